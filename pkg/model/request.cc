// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/request.h"

namespace resmgr {

const CreateRequest* Request::create() {
  auto* const create = std::get_if<CreateRequest>(&body);
  if (create == nullptr || !taken_) return create;
  CreateRequest again;
  if (source_ == nullptr || !source_->ReadCreate(again)) return nullptr;
  *create = std::move(again);
  taken_ = false;
  return create;
}

const ContainerDetails& Request::Details(DetailSet parts) {
  if (details_ == nullptr) details_ = std::make_shared<ContainerDetails>();
  const DetailSet missing = parts.Without(read_);
  if (source_ != nullptr && !missing.empty()) {
    // A stage may have kept the details, which must not change then, so new parts are added to a
    // copy.
    if (details_.use_count() > 1) details_ = std::make_shared<ContainerDetails>(*details_);
    source_->ReadDetails(missing, *details_);
    read_ = read_ | missing;
  }
  return *details_;
}

std::shared_ptr<const ContainerDetails> Request::KeepDetails(DetailSet parts) {
  Details(parts);
  return details_;
}

}  // namespace resmgr
