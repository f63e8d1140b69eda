/* SPDX-License-Identifier: Apache-2.0 */
/* Before the first event, and after the last one. */
#include "device/tracing.h"

bool tconv_tracing_init(struct tconv_tracing *tracing)
{
    atomic_init(&tracing->kinds, 0);
    if (pthread_mutex_init(&tracing->lock, NULL) != 0) return false;
    if (pthread_cond_init(&tracing->ended, NULL) == 0) return true;
    pthread_mutex_destroy(&tracing->lock);
    return false;
}

void tconv_tracing_destroy(struct tconv_tracing *tracing)
{
    pthread_cond_destroy(&tracing->ended);
    pthread_mutex_destroy(&tracing->lock);
}
