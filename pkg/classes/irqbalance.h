// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// irqbalance moves interrupts as it likes, except banned interrupts, and to any CPUs, except banned
// ones. This daemon bans both by its socket while it runs ("setup" answers "... IRQ N LOAD ...
// BANNED MASK", "settings cpus LIST" and "settings ban irqs N N" replace the lists; irqbalance.c,
// irqbalance-ui/ui.c, irqbalance 1.4 and later), and CPUs also by its environment file, which it
// reads when it starts.

// Whether the path of HostFiles is such a socket: "run/irqbalance/irqbalance123.sock" reads and
// takes the mask of banned CPUs.
bool IsIrqbalanceSocket(std::string_view path);
// "SOCKET/interrupts" reads and takes the numbers of banned interrupts.
bool IsIrqbalanceList(std::string_view path);

// "FILE/banned-cpus" reads and takes the lines of the environment file that ban CPUs, or
// kNoBannedCpus; FILE is on the disk.
bool IsIrqbalanceBan(std::string_view path);
inline constexpr std::string_view kNoBannedCpus = "none\n";

// Gives these lines the behaviour of a file of their own: writing replaces them in the present text
// of the environment file and leaves all other lines as they are, which are the administrator's.
// Other files pass unchanged. Thread-compatible.
class IrqbalanceBans final : public HostFiles {
 public:
  // `files` must outlive this object.
  explicit IrqbalanceBans(HostFiles& files) : files_(files) {}

  StatusOr<std::string> Read(const std::string& path) override;
  int Write(const std::string& path, std::string_view text) override;
  std::vector<std::string> List(const std::string& directory) override {
    return files_.List(directory);
  }

 private:
  HostFiles& files_;
};

struct IrqbalancePlan {
  std::vector<HostValue> values{};
  // Interrupts that did not fit into irqbalance's list; ascending.
  std::vector<int> left_out{};
  Status file{};  // why the environment file cannot be read although it should ban CPUs
};

// The values of the socket or the file that ban these CPUs and interrupts (ascending) in addition
// to those banned before. An irqbalance that has read our lines in the environment file does not
// keep their CPUs. `file`: that file, from the root of the host; "": none. Reads first values. May
// block.
IrqbalancePlan PlanIrqbalance(const CpuSet& cpus, const std::vector<int>& interrupts,
                              const std::string& file, HostKeeper& host);

// The lines of an environment file that ban CPUs, in the order of the forms for new and old
// versions; kNoBannedCpus if there are none.
std::string BannedCpusOf(std::string_view text);
// Lines of both forms that ban these CPUs and those that lines of the text ban.
std::string WithBannedCpus(std::string_view text, const CpuSet& banned);
// The environment file's text with these lines in the place of its own, and others at its end.
std::string ReplaceBannedCpus(std::string_view text, std::string_view lines);

// The mask in the answer to "setup". NotFound: the answer has no mask.
StatusOr<std::string> BannedMaskOf(std::string_view answer);

// The numbers of banned interrupts in the answer to "setup", ascending: "24 25\n".
std::string BannedInterruptsOf(std::string_view answer);

// Read from the daemon at this socket, and write to it, with a deadline of a second each. NotFound:
// no program listens there.
StatusOr<std::string> ReadIrqbalance(const std::string& socket);
StatusOr<std::string> ReadIrqbalanceList(const std::string& socket);
// 0, or an error number.
int WriteIrqbalance(const std::string& socket, std::string_view mask);
int WriteIrqbalanceList(const std::string& socket, std::string_view numbers);

}  // namespace resmgr
