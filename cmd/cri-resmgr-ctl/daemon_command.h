// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "pkg/base/status.h"
#include "pkg/base/terminal.h"

namespace resmgr {

// Keeps the members in the daemon's order.
using Reply = nlohmann::ordered_json;

// A command that asks the running daemon on its admin socket (pkg/admin/admin_service.h). Shows the
// reply as a table or, with `-o json` and `-o yaml`, whole; once, or with -w until it is
// interrupted. Control characters of a reply never reach a terminal.
class DaemonCommand : public Command {
 public:
  using Command::Command;
  void Declare(CommandLine& line) override;
  Status Run(std::ostream& out) override;

 protected:
  // Declares further flags and arguments.
  virtual void DeclareMore(CommandLine& /*line*/) {}
  // Whether the answer changes with time, so that -w makes sense.
  virtual bool Watchable() const { return false; }
  // Whether the table is a list that is cut to a terminal's width, so that -o wide makes sense.
  virtual bool IsList() const { return false; }
  // The name of the method that is called.
  virtual std::string_view Method() const = 0;
  virtual StatusOr<Reply> Request() const { return Reply::object(); }
  // Arranges the reply before it is shown in any form.
  virtual Reply Arranged(Reply reply) const { return reply; }
  // Whether the member's text has several lines; all others are reduced to one line for Table.
  virtual bool HasLines(std::string_view /*member*/) const { return false; }
  // The reply for people.
  virtual std::string Table(const Reply& reply) const = 0;
  // Whether the reply could list containers but lists none. If so, the output adds why the daemon
  // knows no containers, if there is a reason.
  virtual bool HasNoContainers(const Reply& /*reply*/) const { return false; }
  // Whether the request succeeded. An error is printed after the reply and becomes the command's
  // error.
  virtual Status Outcome(const Reply& /*reply*/) const { return OkStatus(); }

  // Asks the daemon and returns the arranged reply.
  StatusOr<Reply> Ask(std::string_view request) const;
  // Table of the reply, fit for a terminal.
  std::string TextOf(const Reply& reply) const { return Table(Readable(reply, "")); }
  // How Table formats a list; SetStyle derives it from `out` and the flags.
  const TableStyle& style() const { return style_; }
  void SetStyle(const std::ostream& out);
  // Whether -o wide was given: all columns, and no cell is cut.
  bool wide() const { return output_ == "wide"; }
  // Whether the output is the text of Table.
  bool as_table() const { return output_ == "table" || wide(); }
  bool as_json() const { return output_ == "json"; }
  // Whether -w was given.
  bool watches() const { return watch_; }

 private:
  struct Shown {
    std::string text;
    Status outcome;
  };
  StatusOr<Shown> Look(std::string_view request) const;
  // Returns Form's text and, if there are no containers, the reason.
  std::string FormWithReason(const Reply& reply) const;
  std::string Form(const Reply& reply) const;
  Reply Readable(const Reply& value, std::string_view member) const;

  std::string output_ = "table";
  TableStyle style_;
  bool watch_ = false;
};

// Whether the member "containers" is empty or absent in every object of the list.
bool NoneHasContainers(const Reply& list);

// The member as text, also a number; "-" if it is absent or empty.
std::string Cell(const Reply& object, const char* key);

// A member that is a list of texts: "a, b"; "-" if it is absent or empty.
std::string ListCell(const Reply& object, const char* key);

// A table of JSON's list of moves (pkg/admin/node_json.h).
std::string MovesTable(const Reply& moves);

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

// Long, since a new configuration is answered only after the runtime has moved every container.
inline constexpr std::chrono::milliseconds kPatience{60'000};

// Asks the daemon on its admin socket and waits for the answer, at most for `patience`. `method` is
// one of pkg/admin/admin_service.h. Errors are the daemon's, or kUnavailable, which names the
// socket, if no daemon listens there.
StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request,
                                std::chrono::milliseconds patience = kPatience);
// The same for an answer that is JSON. kInternal: it is not.
StatusOr<Reply> AskForReply(const std::string& socket, std::string_view method,
                            std::string_view request,
                            std::chrono::milliseconds patience = kPatience);

}  // namespace resmgr
