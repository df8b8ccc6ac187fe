// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/nri/host/merge/pristine_container.h"

namespace resmgr::nri {

// The request to plugins about a new container, with the changes of the former ones. It is built
// when a plugin or validator is asked, so usually not again after the last plugin.
// Thread-compatible.
class ShownRequest {
 public:
  explicit ShownRequest(std::shared_ptr<const PristineContainer> pristine)
      : pristine_(std::move(pristine)) {}

  // Adds one plugin's changes, whose claims were granted.
  void Add(api::ContainerAdjustment changes);

  const PristineContainer& pristine() const { return *pristine_; }
  api::CreateContainerRequest& Message();
  // The encoded request.
  std::string Question();

 private:
  const std::shared_ptr<const PristineContainer> pristine_;
  std::optional<api::CreateContainerRequest> request_;
  google::protobuf::RepeatedPtrField<std::string> args_before_;  // of the unchanged container
  std::vector<api::ContainerAdjustment> to_show_;  // changes that request_ does not have yet
};

}  // namespace resmgr::nri
