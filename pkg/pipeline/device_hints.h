// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pkg/model/pod.h"
#include "pkg/pipeline/hint_finder.h"

namespace resmgr {

// A program that knows the memory nodes near to a container's devices if no path of them shows
// this. Loop's thread only.
class DeviceHints {
 public:
  virtual ~DeviceHints() = default;

  // As HintFinder::Ask: `answer` is called once, later, on the loop, without hints if none come in
  // time. nullptr: the program is not asked now.
  virtual std::unique_ptr<HintFinder::Question> Ask(
      const Pod& pod, const std::string& container,
      std::function<void(HintFinder::Hints)> answer) = 0;
};

}  // namespace resmgr
