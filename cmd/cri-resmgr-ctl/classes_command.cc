// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/classes_command.h"

#include <string_view>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "pkg/base/table.h"

namespace resmgr {
namespace {

class ClassesCommand final : public DaemonCommand {
 public:
  ClassesCommand()
      : DaemonCommand(
            "classes",
            "List the classes in use, with their containers, and what the machine lacks for them.",
            R"(Lists the classes that the configuration, policies or the annotations of pods ask for, with the
containers that have them. An inactive one has no effect, or not all of it: the reason names the
file that is missing, or what the kernel answered.

  interrupts  interrupts go to other CPUs
  workqueues  the kernel's unbound work runs on other CPUs
  quota       the pod has no CPU quota
  partition   the CPUs are a scheduling domain of their own
  idle        the longest time that a CPU may take to wake up
  clock       the governor of the clock
  cpu         classes of CPUs: clock, energy preference, boost, idle states
  rdt         parts of caches and memory bandwidth
  blockio     limits and weights of block devices
  scheduling  scheduler, I/O priority and burst
  memory      limits of the container's cgroup below its memory limit, and memory policies)") {}

 private:
  bool Watchable() const override { return true; }
  std::string_view Method() const override { return "Classes"; }
  std::string Table(const Reply& reply) const override { return ClassesText(reply); }
};

}  // namespace

std::string ClassesText(const Reply& classes) {
  if (classes.empty()) return "No classes are in use.\n";
  std::vector<TableRow> rows = {{"KIND", "NAME", "STATE", "CONTAINERS", "REASON"}};
  for (const Reply& one : classes) {
    std::string containers;
    for (const Reply& name : one.value("containers", Reply::array()))
      containers += (containers.empty() ? "" : ", ") + name.get<std::string>();
    rows.push_back({Cell(one, "kind"), Cell(one, "name"), Cell(one, "state"),
                    containers.empty() ? "-" : containers, Cell(one, "reason")});
  }
  return FormatTable(rows);
}

std::unique_ptr<Command> MakeClassesCommand() {
  return std::make_unique<ClassesCommand>();
}

}  // namespace resmgr
