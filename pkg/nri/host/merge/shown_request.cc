// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/shown_request.h"

#include "pkg/nri/host/merge/reply_edits.h"

namespace resmgr::nri {
namespace {

// Bytes; longer changes are applied at once, since otherwise the parts that they remove or replace
// would be kept, too.
constexpr size_t kMostToKeep = 16 << 10;

}  // namespace

void ShownRequest::Add(api::ContainerAdjustment changes) {
  const bool is_long = changes.ByteSizeLong() > kMostToKeep;
  to_show_.push_back(std::move(changes));
  if (is_long) Message();
}

api::CreateContainerRequest& ShownRequest::Message() {
  if (!request_) {
    request_.emplace();
    *request_->mutable_pod() = pristine_->pod();
    *request_->mutable_container() = pristine_->Make();
    args_before_ = request_->container().args();
  }
  for (const api::ContainerAdjustment& changes : std::exchange(to_show_, {}))
    ReplyEdits(changes).ShowIn(args_before_, *request_->mutable_container());
  return *request_;
}

std::string ShownRequest::Question() {
  if (!request_ && to_show_.empty()) return pristine_->Question();
  return Message().SerializeAsString();
}

}  // namespace resmgr::nri
