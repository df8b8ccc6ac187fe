// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "pkg/nri/host/merge/pristine_container.h"

namespace resmgr::nri {

// A new container from a given message.
class GivenContainer final : public PristineContainer {
 public:
  explicit GivenContainer(api::Container container, api::PodSandbox pod = {})
      : container_(std::move(container)), pod_(std::move(pod)) {}

  const api::PodSandbox& pod() const override { return pod_; }
  const std::string& id() const override { return container_.id(); }
  api::Container Make() const override { return container_; }
  api::Container MakeOutline() const override {
    api::Container outline;
    outline.set_id(container_.id());
    outline.set_name(container_.name());
    if (container_.linux().has_seccomp_profile()) {
      *outline.mutable_linux()->mutable_seccomp_profile() = container_.linux().seccomp_profile();
    }
    return outline;
  }
  std::string Question() const override {
    api::CreateContainerRequest request;
    *request.mutable_pod() = pod_;
    *request.mutable_container() = container_;
    return request.SerializeAsString();
  }

 private:
  const api::Container container_;
  const api::PodSandbox pod_;
};

inline std::shared_ptr<const PristineContainer> Given(api::Container container,
                                                      api::PodSandbox pod = {}) {
  return std::make_shared<GivenContainer>(std::move(container), std::move(pod));
}

}  // namespace resmgr::nri
