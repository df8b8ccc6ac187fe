// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pkg/model/pod.h"
#include "pkg/pipeline/hint_finder.h"

namespace resmgr {

// A program that knows near to which memory nodes the devices of a container are, where no path
// tells it. Loop's thread only.
class DeviceHints {
 public:
  virtual ~DeviceHints() = default;

  // As HintFinder::Ask: `answer` is called once, later, on the loop, without hints where there are
  // none in time. nullptr: nothing is asked now.
  virtual std::unique_ptr<HintFinder::Question> Ask(
      const Pod& pod, const std::string& container,
      std::function<void(HintFinder::Hints)> answer) = 0;
};

}  // namespace resmgr
