// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// What the API server asks, of an AdmissionReview of admission.k8s.io/v1 or v1beta1.
struct AdmissionRequest {
  std::string api_version{};   // of the review; the answer has the same
  std::string uid{};           // names the question
  std::string group{};         // of the object, "" for pods
  std::string kind{};          // "Pod"
  std::string sub_resource{};  // "" when the object itself is written, else "status", "resize", ...
  std::string operation{};     // CREATE, UPDATE, DELETE or CONNECT
  // Of these only what review_reader.h keeps.
  nlohmann::json object{};      // as the client wants it to be stored; null with DELETE
  nlohmann::json old_object{};  // as it is stored; null with CREATE
};

// InvalidArgument when the text is not such a review. The sender of that cannot understand an
// answer either: without the uid there is none.
StatusOr<AdmissionRequest> DecodeAdmissionReview(std::string_view text);

// The API server's objects are always allowed: this webhook refuses nothing.
struct AdmissionResponse {
  std::string patch{};    // JSON patch; empty for none
  std::string warning{};  // shown to who wrote the object; empty for none
};

// The AdmissionReview to answer `request` with, as JSON.
std::string EncodeAdmissionReview(const AdmissionRequest& request,
                                  const AdmissionResponse& response);

}  // namespace resmgr::webhook
