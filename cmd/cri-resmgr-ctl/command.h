// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/command_line.h"

namespace resmgr {

// One command of cri-resmgr-ctl. Lives for one run of the program: flags are kept in members that
// Declare names as targets.
class Command {
 public:
  virtual ~Command() = default;

  // As it is typed: "topology".
  virtual std::string_view name() const = 0;
  // One line, for the list of commands.
  virtual std::string_view summary() const = 0;
  // What stands at the top of `COMMAND -help`; several paragraphs are fine.
  virtual std::string_view description() const = 0;

  virtual void Declare(CommandLine& line) = 0;
  // Where the running daemon is, and whether that was told with -socket; before Run. Commands that
  // need no daemon do not care.
  virtual void UseSocket(std::string_view /*socket*/, bool /*told*/) {}
  // Where notes beside the result go; before Run.
  virtual void UseNotes(std::ostream& /*notes*/) {}
  // After the flags were read. Writes its result to `out`; an error becomes one
  // line and the exit code that ExitCodeOf gives.
  virtual Status Run(std::ostream& out) = 0;
};

}  // namespace resmgr
