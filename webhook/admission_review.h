// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// The API server's question: an AdmissionReview of admission.k8s.io/v1 or v1beta1.
struct AdmissionRequest {
  std::string api_version{};   // of the review; the answer repeats it
  std::string uid{};           // identifies the question
  std::string group{};         // API group of the object, "" for pods
  std::string kind{};          // "Pod"
  std::string sub_resource{};  // "" when the object itself is written, else "status", "resize", ...
  std::string operation{};     // CREATE, UPDATE, DELETE or CONNECT
  // Both objects have only the members that review_reader.h keeps.
  nlohmann::json object{};      // as the client wants it stored; null with DELETE
  nlohmann::json old_object{};  // the stored object; null with CREATE
};

// kInvalidArgument when the text is not such a review. There is no answer without a uid, so the
// sender could not understand one.
StatusOr<AdmissionRequest> DecodeAdmissionReview(std::string_view text);

// The API server's objects are always allowed: this webhook refuses nothing.
struct AdmissionResponse {
  std::string patch{};    // JSON patch; empty for none
  std::string warning{};  // shown to the user who wrote the object; empty for none
};

// Encodes the AdmissionReview that answers `request`, as JSON.
std::string EncodeAdmissionReview(const AdmissionRequest& request,
                                  const AdmissionResponse& response);

}  // namespace resmgr::webhook
