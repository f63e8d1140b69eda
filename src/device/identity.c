/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the identity of a device, and keys from it: everything that kept programs and search
 * records depend on. */
#include "base/sources.h"
#include "device/device_members.h"
#include "tconv_cl/version.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDENTITY = 1500, UUID = 16 };

/* One number for all kernel sources of the library. */
static uint64_t sources_hash(void)
{
    uint64_t hash = 0;
    for (const struct tconv_source *s = tconv_sources; s->name != NULL; s++)
        hash = XXH3_64bits_withSeed(s->text, strlen(s->text), hash);
    return hash;
}

/* The device's UUID (cl_khr_device_uuid), or zeros if it has none. OpenCL 1.2 does not name it. A
 * part has that of the whole device, whose programs it shares. */
static void read_uuid(cl_device_id id, char text[2 * UUID + 1])
{
    unsigned char uuid[UUID] = {0};
    if (clGetDeviceInfo(tconv_whole_device(id), 0x106A, sizeof uuid, uuid, NULL) != CL_SUCCESS)
        memset(uuid, 0, sizeof uuid);
    for (int i = 0; i < UUID; i++) snprintf(text + 2 * i, 3, "%02x", uuid[i]);
}

char *tconv_identity_of(const tconv_device *device)
{
    const tconv_device_info *d = &device->info;
    cl_platform_id platform = NULL;
    cl_uint bits = 0, vendor = 0;
    char version[256] = "", uuid[2 * UUID + 1];
    if (clGetDeviceInfo(device->id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) !=
            CL_SUCCESS ||
        clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL) !=
            CL_SUCCESS ||
        clGetDeviceInfo(device->id, CL_DEVICE_ADDRESS_BITS, sizeof bits, &bits, NULL) !=
            CL_SUCCESS ||
        clGetDeviceInfo(device->id, CL_DEVICE_VENDOR_ID, sizeof vendor, &vendor, NULL) !=
            CL_SUCCESS)
        return NULL;
    version[sizeof version - 1] = '\0';
    read_uuid(device->id, uuid);
    char *text = malloc(IDENTITY);
    if (text == NULL) return NULL;
    const int length = snprintf(
        text, IDENTITY,
        "tconv-cl %s %016" PRIx64 "\nplatform %s, %s\ndevice %s, %s, %08x, %s, %u bits, %s\ndriver "
        "%s\n",
        TCONV_VERSION_STRING, sources_hash(), d->platform, version, d->name, d->vendor,
        (unsigned)vendor, d->version, (unsigned)bits, uuid, d->driver);
    if (length > 0 && length < IDENTITY) return text;
    free(text);
    return NULL;
}
