// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `topology`: shows a machine as the policies see it. Needs no daemon.
class TopologyCommand : public Command {
 public:
  std::string_view name() const override { return "topology"; }
  std::string_view summary() const override;
  std::string_view description() const override;
  void Declare(CommandLine& line) override;
  Status Run(std::ostream& out) override;

 private:
  std::string topology_ = "live";
  std::string output_ = "table";
};

}  // namespace resmgr
