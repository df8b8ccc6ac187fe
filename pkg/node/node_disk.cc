// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/node_disk.h"

#include <chrono>
#include <list>
#include <string_view>
#include <utility>

#include "pkg/cri/call_tap.h"
#include "pkg/log/log.h"
#include "pkg/node/local_config.h"
#include "pkg/state/claimed_file_system.h"
#include "pkg/topology/online_cpus.h"

namespace resmgr {
namespace {

// The files of the state. Never destroyed: a thread that hangs on their disk may use them until the
// process ends, and no other daemon may change them before. Without them the node works from the
// runtime's containers alone.
FileSystem& StateFiles(const NodeOptions& options) {
  const auto on_refusal = [](const Status& status) {
    const bool other = status.code() == StatusCode::kAlreadyExists;
    GetLogger("state").Warn("-relay-dir: {}; the state will be lost at a restart{}",
                            Message(status), other ? " before that one ends" : "");
  };
  static auto& all = *new std::list<ClaimedFileSystem>;
  return all.emplace_back(RealFileSystem(), options.StateDirectory(), on_refusal);
}

}  // namespace

StateStore OpenState(const NodeOptions& options, const Setup& setup) {
  // Only the first wait for a disk that does not answer is granted.
  return {StateFiles(options),
          options.StateDirectory(),
          StateLabel(setup.machine->Fingerprint(), HardwareFingerprint(*setup.machine)),
          [](std::string_view line) { GetLogger("state").Warn("{}", line); },
          options.CallsFile(),
          setup.disk_answers ? StateStore::kPatience : std::chrono::milliseconds(0)};
}

StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const NodeOptions& node, const Setup& setup,
                                                   Metrics* metrics) {
  Logger& log = GetLogger("message");
  dump::Dumper::Options options = DumpOptions(setup.config.dump, node.overrides, node.dump_secrets,
                                              setup.delivered, node.dump_directory);
  const Status allowed = dump::Dumper::Read(options).status();
  if (setup.delivered && !allowed.ok()) {
    log.Warn("dump is off: {}", Message(allowed));
    options.specs.clear();
    options.file.clear();
  }
  options.on_lost = [metrics] {
    if (metrics != nullptr) metrics->Count(Metrics::Event::kDumpDropped);
  };
  options.decompress = &CallTap::Decompress;
  return dump::Dumper::Create(std::move(options), [&log](bool warning, std::string_view line) {
    warning ? log.Warn("{}", line) : log.Info("{}", line);
  });
}

Status CheckDump(const NodeOptions& node, const Setup& setup) {
  if (setup.delivered) return OkStatus();
  return dump::Dumper::Read(DumpOptions(setup.config.dump, node.overrides, node.dump_secrets, false,
                                        node.dump_directory))
      .status();
}

}  // namespace resmgr
