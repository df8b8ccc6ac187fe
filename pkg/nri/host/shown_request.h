// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/nri/host/pristine_container.h"

namespace resmgr::nri {

// What plugins are asked about a container that is created: as those before have changed it. It is
// made when a plugin or validator is asked, so mostly not again after the last plugin.
// Thread-compatible.
class ShownRequest {
 public:
  explicit ShownRequest(std::shared_ptr<const PristineContainer> pristine)
      : pristine_(std::move(pristine)) {}

  // One plugin's changes, whose claims were granted.
  void Add(api::ContainerAdjustment changes);

  const PristineContainer& pristine() const { return *pristine_; }
  api::CreateContainerRequest& Message();
  // The same, encoded.
  std::string Question();

 private:
  const std::shared_ptr<const PristineContainer> pristine_;
  std::optional<api::CreateContainerRequest> request_;
  google::protobuf::RepeatedPtrField<std::string> args_before_;  // of the pristine container
  std::vector<api::ContainerAdjustment> to_show_;                // what request_ does not have yet
};

}  // namespace resmgr::nri
