// SPDX-License-Identifier: Apache-2.0
#include "webhook/admission_review.h"

#include <utility>

#include <absl/strings/escaping.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "webhook/json_fields.h"
#include "webhook/review_reader.h"

namespace resmgr::webhook {

namespace {

using nlohmann::json;

Status DecodeRequest(json& members, AdmissionRequest& request) {
  RESMGR_ASSIGN_OR_RETURN(request.uid, StringAt(members, "uid"));
  if (request.uid.empty()) return InvalidArgument("it has no uid");
  RESMGR_ASSIGN_OR_RETURN(const json* kind, ObjectAt(members, "kind"));
  if (kind == nullptr) return InvalidArgument("it has no kind");
  RESMGR_ASSIGN_OR_RETURN(request.group, StringAt(*kind, "group"));
  RESMGR_ASSIGN_OR_RETURN(request.kind, StringAt(*kind, "kind"));
  RESMGR_ASSIGN_OR_RETURN(request.sub_resource, StringAt(members, "subResource"));
  RESMGR_ASSIGN_OR_RETURN(request.operation, StringAt(members, "operation"));
  const auto take = [&members](const char* name, json& target) {
    const auto found = members.find(name);
    if (found != members.end()) target = std::move(*found);
  };
  take("object", request.object);
  take("oldObject", request.old_object);
  return OkStatus();
}

}  // namespace

StatusOr<AdmissionRequest> DecodeAdmissionReview(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(json review, ReadReview(text));
  if (!review.is_object()) return InvalidArgument("the request is not a JSON object");
  AdmissionRequest request;
  RESMGR_ASSIGN_OR_RETURN(const std::string kind, StringAt(review, "kind"));
  if (kind != "AdmissionReview") {
    return InvalidArgument("kind is \"{}\", not AdmissionReview", Printable(kind, 64));
  }
  RESMGR_ASSIGN_OR_RETURN(request.api_version, StringAt(review, "apiVersion"));
  if (request.api_version != "admission.k8s.io/v1" &&
      request.api_version != "admission.k8s.io/v1beta1") {
    return InvalidArgument("apiVersion \"{}\" is not one of admission.k8s.io/v1 and v1beta1",
                           Printable(request.api_version, 64));
  }
  const auto members = review.find("request");
  if (members == review.end() || !members->is_object()) {
    return InvalidArgument("the review has no request");
  }
  const Status status = DecodeRequest(*members, request);
  if (!status.ok()) return Annotate(status, "request");
  return request;
}

std::string EncodeAdmissionReview(const AdmissionRequest& request,
                                  const AdmissionResponse& response) {
  json answer = {{"uid", request.uid}, {"allowed", true}};
  if (!response.patch.empty()) {
    answer["patchType"] = "JSONPatch";
    // Go's []byte is base64 in JSON.
    answer["patch"] = absl::Base64Escape(response.patch);
  }
  if (!response.warning.empty()) answer["warnings"] = json::array({response.warning});
  const json review = {{"apiVersion", request.api_version},
                       {"kind", "AdmissionReview"},
                       {"response", std::move(answer)}};
  // JsonText replaces invalid UTF-8: a warning may have been cut within a character.
  return JsonText(review);
}

}  // namespace resmgr::webhook
