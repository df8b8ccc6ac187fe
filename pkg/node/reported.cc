// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/reported.h"

namespace resmgr {

void Reported::NoteConfiguration(const Configurator& configurator) {
  publisher.Show({.policy = configurator.current().policy.active,
                  .source = configurator.source(),
                  .losses = configurator.losses()});
  cpus.NoteConfiguration();
  scheduler.NoteConfiguration(configurator.current().nrt);
}

std::unique_ptr<Reported> MakeReported(const NodeOptions& options, EventLoop& loop,
                                       h2::FlushQueue& flushes, const Machine& machine,
                                       Counted* counted) {
  if (options.agent_socket.empty()) return nullptr;
  AgentReports::Options reports;
  if (counted != nullptr) {
    reports.on_events = [&node = counted->node](size_t taken, size_t lost) {
      node.PodEvents(taken, lost);
    };
  }
  return std::make_unique<Reported>(loop, flushes, options.agent_socket, machine,
                                    std::move(reports),
                                    counted == nullptr ? nullptr : &counted->node);
}

}  // namespace resmgr
