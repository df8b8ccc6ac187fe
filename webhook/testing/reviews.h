// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resmgr::webhook {

// A typical pod as an API server sends it, some 5 KiB with its defaults and managed fields: an init
// container, a sidecar and two containers with requests and limits.
nlohmann::json EverydayPod();

// The AdmissionReview about `pod` that an API server of `version` ("v1", "v1beta1") sends.
nlohmann::json ReviewOf(const nlohmann::json& pod, std::string_view operation = "CREATE",
                        std::string_view version = "v1");

// The patch in an answer to a review; null without one.
nlohmann::json PatchIn(const nlohmann::json& review);

}  // namespace resmgr::webhook
