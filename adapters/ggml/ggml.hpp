// SPDX-License-Identifier: Apache-2.0
// ggml's declarations, those for backends among them, which no package installs.
#pragma once

#include <ggml-backend-impl.h>
#include <ggml-backend.h>
#include <ggml-impl.h>
#include <ggml.h>
