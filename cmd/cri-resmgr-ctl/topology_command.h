// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// `topology`: shows a machine as the policies see it: the one that -topology describes, else the
// running daemon's, else this one if -socket was not given and no daemon runs. With -types, the
// servers that -topology knows by name.
class TopologyCommand : public Command {
 public:
  std::string_view name() const override { return "topology"; }
  std::string_view summary() const override;
  std::string_view description() const override;
  void Declare(CommandLine& line) override;
  void UseSocket(std::string_view socket, bool told) override;
  Status Run(std::ostream& out) override;

 private:
  Status ListTypes(std::ostream& out) const;
  StatusOr<std::string> FromDaemon() const;
  StatusOr<std::string> FromDescription(std::string_view description) const;

  std::string socket_;
  bool socket_told_ = false;
  std::optional<std::string> topology_;
  bool types_ = false;
  std::string output_ = "table";
};

}  // namespace resmgr
