// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/pod.h"
#include "pkg/pipeline/stage.h"

namespace resmgr {

// Refuses creations of containers whose pod asks for an isolation with an unknown value.
// Loop's thread only.
class IsolationStage final : public Stage {
 public:
  // The pod, nullptr where it is not known.
  using FindPod = std::function<const Pod*(const PodSandboxId& id)>;
  using Check = std::function<Status(const Pod& pod, const std::string& container)>;

  IsolationStage(FindPod find, Check check);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

 private:
  const FindPod find_;
  const Check check_;
};

}  // namespace resmgr
