// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include <fmt/format.h>

#include "pkg/model/resources_annotation.h"
#include "webhook/admission_review.h"
#include "webhook/pod_patch.h"

namespace resmgr::webhook {

namespace {

// A write of the subresource "status" may change annotations. For "resize", "ephemeralcontainers"
// and similar ones the API server keeps the stored annotations.
bool IsPodToAnnotate(const AdmissionRequest& request) {
  return request.kind == "Pod" && request.group.empty() &&
         (request.sub_resource.empty() || request.sub_resource == "status") &&
         (request.operation == "CREATE" || request.operation == "UPDATE");
}

// The API server keeps the stored spec at a write of "status", whatever spec the request has.
const nlohmann::json& StoredPod(const AdmissionRequest& request) {
  return request.sub_resource == "status" ? request.old_object : request.object;
}

AdmissionResponse Decide(const AdmissionRequest& request) {
  AdmissionResponse response;
  if (!IsPodToAnnotate(request)) return response;
  auto patch = PatchOfPod(request.object, StoredPod(request));
  std::string problem =
      patch.ok() ? std::move(patch->warning) : std::string(Message(patch.status()));
  if (patch.ok()) response.patch = std::move(patch->patch);
  if (!problem.empty()) {
    response.warning = fmt::format("no annotation {}: {}", kResourcesAnnotation, problem);
  }
  return response;
}

}  // namespace

HttpReply ReviewAdmission(std::string_view body) {
  const auto request = DecodeAdmissionReview(body);
  if (!request.ok()) {
    return {400, "text/plain", fmt::format("{}\n", Message(request.status()))};
  }
  return {200, "application/json", EncodeAdmissionReview(*request, Decide(*request)),
          /*review=*/true};
}

}  // namespace resmgr::webhook
