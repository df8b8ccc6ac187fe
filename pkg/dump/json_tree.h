// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "pkg/dump/dumped_call.h"

namespace resmgr::dump {

// A payload of the Docker API, which is JSON: its `encoding` is "json". Without `show_secrets`
// values of environment variables ("Env"), credentials (as in AuthConfig) and the manifest that an
// annotation repeats are hidden. Of what is no JSON, the size. Pure function.
nlohmann::json JsonTree(const Payload& payload, bool show_secrets);

}  // namespace resmgr::dump
