// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/create_request.h"
#include "pkg/model/pod.h"
#include "pkg/pipeline/stage.h"

namespace resmgr {

// Refuses creations of containers whose pod asks for classes that do not exist, and adds what
// classes set in the container's own cgroup. Loop's thread only.
class ClassStage final : public Stage {
 public:
  // Files of a cgroup v2 to their texts.
  using Files = std::map<std::string, std::string>;
  // The pod, nullptr where it is not known.
  using FindPod = std::function<const Pod*(const PodSandboxId& id)>;
  using Decide = std::function<StatusOr<Files>(const Pod& pod, const CreateRequest& create)>;

  ClassStage(FindPod find, Decide decide);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

 private:
  const FindPod find_;
  const Decide decide_;
};

}  // namespace resmgr
