// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/node_end.h"

#include <csignal>
#include <memory>
#include <utility>

#include "pkg/log/log.h"
#include "pkg/sys/notify.h"

namespace resmgr {
namespace {

// Ends the loop when the calls in flight are over.
void EndNode(EventLoop& loop, FrontDoor& door, const EventLoop::Task& first) {
  if (const Status status = NotifyStopping(); !status.ok())
    GetLogger("cri-resmgr").Warn("{}", Message(status));
  first();
  door.Drain([&loop] { loop.Stop(); });
}

}  // namespace

std::array<EventLoop::HandlePtr, 4> HandleSignals(EventLoop& loop, FrontDoor& door,
                                                  HandOver& hand_over, EventLoop::Task first,
                                                  EventLoop::Task reload, EventLoop::Task debug) {
  const auto end = [&loop, &door, &hand_over, first = std::move(first),
                    ending = std::make_shared<bool>(false)](pid_t sender) {
    Logger& log = GetLogger("cri-resmgr");
    if (std::exchange(*ending, true)) {
      log.Info("a second signal, of process {}: ending at once", sender);
      loop.Stop();
      return;
    }
    log.Info(
        "ending on a signal of process {}: waiting for the calls in flight; a second signal ends "
        "at once",
        sender);
    hand_over.Stop();
    EndNode(loop, door, first);
  };
  return {loop.OnSignal(SIGTERM, end), loop.OnSignal(SIGINT, end),
          loop.OnSignal(SIGHUP, [reload = std::move(reload)](pid_t) { reload(); }),
          loop.OnSignal(SIGUSR1, [debug = std::move(debug)](pid_t) { debug(); })};
}

HandOver::Options HandOverOptions(const NodeOptions& options, EventLoop& loop, FrontDoor& door,
                                  EventLoop::Task first) {
  HandOver::Options all{.loop = loop, .door = door, .version = options.version};
  if (!options.door.sockets.empty()) all.socket = HandOver::SocketOf(options.relay_socket);
  if (HasServiceManager()) {
    all.refusal =
        "the service manager would start it again; have that restart it, and hold its socket "
        "meanwhile (cri-resmgr.socket)";
  }
  all.end = [&loop, &door, first = std::move(first)] { EndNode(loop, door, first); };
  return all;
}

}  // namespace resmgr
