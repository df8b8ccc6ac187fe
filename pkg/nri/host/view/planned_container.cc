// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/planned_container.h"

#include "pkg/base/utf8.h"
#include "pkg/base/wire.h"
#include "pkg/nri/host/view/object_views.h"

namespace resmgr::nri {

api::Container PlannedContainer::Make() const {
  api::Container container = ToContainer(create_, *details_, image(), pod());
  container.set_id(id_);
  return container;
}

api::Container PlannedContainer::MakeOutline() const {
  api::Container container;
  container.set_id(id_);
  container.set_name(Utf8Repaired(create_.name));
  if (details_->security.seccomp) AddSeccomp(details_->security, *container.mutable_linux());
  return container;
}

std::string PlannedContainer::Question() const {
  using Request = api::CreateContainerRequest;
  std::string request;
  {
    // Bytes of the container's parts besides its environment, in most cases.
    constexpr size_t kMostly = 2048;
    FieldWriter fields(request);
    fields.Reserve(pod_->message.Encoded().size() + details_->environment.texts().size() + kMostly);
    fields.Bytes(Request::kPodFieldNumber, pod_->message.Encoded());
    const size_t container = fields.Begin(Request::kContainerFieldNumber);
    EncodeContainer(create_, *details_, image(), pod(), id_, fields);
    fields.End(container);
  }
  return request;
}

}  // namespace resmgr::nri
