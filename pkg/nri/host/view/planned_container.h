// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pkg/model/container_details.h"
#include "pkg/model/request.h"
#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/host/view/host_objects.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

// A container of a CreateContainer request, as the first plugin sees it. Loop's thread only.
class PlannedContainer final : public PristineContainer {
 public:
  // Takes the request with earlier stages' changes.
  PlannedContainer(HostPodPtr pod, CreateRequest create,
                   std::shared_ptr<const ContainerDetails> details)
      : pod_(std::move(pod)), create_(std::move(create)), details_(std::move(details)) {}

  // Both are called before it is shown.
  void SetId(std::string alias) { id_ = std::move(alias); }
  void SetImage(const ImageFacts& image) { image_ = image; }

  const CreateRequest& create() const { return create_; }
  const ContainerDetails& details() const { return *details_; }

  const api::PodSandbox& pod() const override { return *pod_->message; }
  const std::string& id() const override { return id_; }
  api::Container Make() const override;
  api::Container MakeOutline() const override;
  std::string Question() const override;

 private:
  const ImageFacts* image() const { return image_ ? &*image_ : nullptr; }

  const HostPodPtr pod_;
  const CreateRequest create_;
  const std::shared_ptr<const ContainerDetails> details_;
  std::string id_;
  std::optional<ImageFacts> image_;
};

}  // namespace resmgr::nri
