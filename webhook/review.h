// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

struct HttpReply {
  unsigned status = 200;
  std::string_view content_type = "text/plain";
  std::string body{};
  bool review = false;  // answers an admission review
};

// Answers one admission request; both are JSON. A pure function, thread-safe.
//
// A pod that is created or updated, or whose status is, gets the patch of PatchOfPod (pod_patch.h);
// every other request is allowed unchanged. A pod that cannot be read is allowed too, with a
// warning that says why it got no annotation: this webhook never keeps a pod from being written.
// 400, with the reason as text, when the body is not an AdmissionReview.
HttpReply ReviewAdmission(std::string_view body);

// The API server's question: an AdmissionReview of admission.k8s.io/v1 or v1beta1.
struct AdmissionRequest {
  std::string api_version{};   // of the review; the answer repeats it
  std::string uid{};           // identifies the question
  std::string group{};         // API group of the object, "" for pods
  std::string kind{};          // "Pod"
  std::string sub_resource{};  // "" when the object itself is written, else "status", "resize", ...
  std::string operation{};     // CREATE, UPDATE, DELETE or CONNECT
  // Both objects have only the members that ReadReview keeps.
  nlohmann::json object{};      // as the client wants it stored; null with DELETE
  nlohmann::json old_object{};  // the stored object; null with CREATE
};

// kInvalidArgument if the text is not such a review, or has no uid: without it the sender could not
// match the answer.
StatusOr<AdmissionRequest> DecodeAdmissionReview(std::string_view text);

// The API server's objects are always allowed: this webhook refuses nothing.
struct AdmissionResponse {
  std::string patch{};    // JSON patch; empty for none
  std::string warning{};  // shown to the user who wrote the object; empty for none
};

// Encodes the AdmissionReview that answers `request`, as JSON.
std::string EncodeAdmissionReview(const AdmissionRequest& request,
                                  const AdmissionResponse& response);

// Reads an AdmissionReview and keeps only the members that this webhook needs: those that identify
// the question, and for the object and the stored object the annotations and each container's name
// and resources. A review of 4 MiB can hold millions of other values, which as a tree would take a
// hundred times its size.
//
// Kept members have the values and types of the text; of a repeated name the last one counts.
// Values that are nested deeper than Kubernetes' own types are left out.
//
// kInvalidArgument: the text is not JSON, or the kept members take too much memory; a pod of that
// size exceeds other limits of Kubernetes. A pure function, thread-safe.
StatusOr<nlohmann::json> ReadReview(std::string_view text);

}  // namespace resmgr::webhook
