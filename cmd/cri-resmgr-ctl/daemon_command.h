// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

// Keeps the order in which the daemon wrote the members.
using Reply = nlohmann::ordered_json;

// A command that asks the running daemon on its admin socket (pkg/admin/admin_service.h). Shows the
// reply as a table or, with `-o json`, as it came.
class DaemonCommand : public Command {
 public:
  void Declare(CommandLine& line) override;
  void UseSocket(std::string_view socket, bool /*told*/) override { socket_ = socket; }
  Status Run(std::ostream& out) override;

 protected:
  // More flags and arguments.
  virtual void DeclareMore(CommandLine& /*line*/) {}
  // The method's name, and the request, from the flags. InvalidArgument when they do not fit.
  virtual std::string_view Method() const = 0;
  virtual StatusOr<Reply> Request() const { return Reply::object(); }
  // The reply for people.
  virtual std::string Table(const Reply& reply) const = 0;

 private:
  std::string socket_;
  std::string output_ = "table";
};

// Asks the daemon; waits for the answer. Unavailable names the socket.
StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request);

// The member as text, numbers too; "-" when it is absent or empty.
std::string Cell(const Reply& object, const char* key);

// From JSON's list of moves (pkg/admin/node_json.h).
std::string MovesTable(const Reply& moves);

}  // namespace resmgr
