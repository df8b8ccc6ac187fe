// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

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
// warning that tells why it got no annotation: this webhook never keeps a pod from being written.
// 400, with the reason as text, when the body is not an AdmissionReview.
HttpReply ReviewAdmission(std::string_view body);

}  // namespace resmgr::webhook
