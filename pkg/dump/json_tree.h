// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "pkg/dump/dumped_call.h"

namespace resmgr::dump {

// The tree of a payload of the Docker API, which is JSON: its `encoding` is "json". Without
// `show_secrets` values of environment variables ("Env"), credentials (for example AuthConfig) and
// the manifest that an annotation repeats are hidden. For invalid JSON, its size. Pure function.
nlohmann::json JsonTree(const Payload& payload, bool show_secrets);

}  // namespace resmgr::dump
