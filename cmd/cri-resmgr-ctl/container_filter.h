// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// The flags that choose containers by their pods: -n NAMESPACE and -l SELECTOR. The daemon applies
// them, since it knows the labels.
class ContainerFilter {
 public:
  void Declare(CommandLine& line);
  // Whether one of the flags was given.
  bool given() const { return !namespace_.empty() || !selector_.empty(); }
  void AddTo(Reply& request) const;

 private:
  std::string namespace_;
  std::string selector_;
};

}  // namespace resmgr
