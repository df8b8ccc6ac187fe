// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include <fmt/format.h>

#include "pkg/kube/resources_annotation.h"
#include "webhook/admission_review.h"
#include "webhook/pod_patch.h"

namespace resmgr::webhook {

namespace {

// Subresources are left alone: the API server keeps the annotations as they are stored when
// "status", "resize" and their like are written.
bool IsPodToAnnotate(const AdmissionRequest& request) {
  return request.kind == "Pod" && request.group.empty() && request.sub_resource.empty() &&
         (request.operation == "CREATE" || request.operation == "UPDATE");
}

AdmissionResponse Decide(const AdmissionRequest& request) {
  AdmissionResponse response;
  if (!IsPodToAnnotate(request)) return response;
  auto patch = PatchOfPod(request.object);
  if (patch.ok()) {
    response.patch = *std::move(patch);
  } else {
    response.warning =
        fmt::format("no annotation {}: {}", kResourcesAnnotation, Message(patch.status()));
  }
  return response;
}

}  // namespace

HttpReply ReviewAdmission(std::string_view body) {
  const auto request = DecodeAdmissionReview(body);
  if (!request.ok()) {
    return {400, "text/plain", fmt::format("{}\n", Message(request.status()))};
  }
  return {200, "application/json", EncodeAdmissionReview(*request, Decide(*request))};
}

}  // namespace resmgr::webhook
