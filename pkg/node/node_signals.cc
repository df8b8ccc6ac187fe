// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/node_signals.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "pkg/config/config_node.h"
#include "pkg/log/all_debug.h"
#include "pkg/node/config_reader.h"
#include "pkg/sys/notify.h"

namespace resmgr {
namespace {

// Drains the door, and stops the loop when the calls in flight are over.
void EndNode(EventLoop& loop, FrontDoor& door, const EventLoop::Task& first) {
  if (const Status status = NotifyStopping(); !status.ok())
    GetLogger("cri-resmgr").Warn("{}", Message(status));
  first();
  door.Drain([&loop] { loop.Stop(); });
}

constexpr std::chrono::milliseconds kRuntimeLookPeriod{200};

}  // namespace

void RestoreLater(const NodeOptions& options, OffLoop& off_loop, Configurator& configurator) {
  const Status begun =
      off_loop.Run([directory = options.directory, &configurator]() -> EventLoop::Task {
        auto kept = std::make_shared<StatusOr<std::optional<DeliveredConfig>>>(
            LoadDeliveredConfig(directory));
        return [kept, &configurator] {
          if (!kept->ok()) {
            GetLogger("config").Warn("{}", Message(kept->status()));
          } else if (kept->value().has_value()) {
            configurator.Restore(**std::move(*kept));
          }
        };
      });
  if (!begun.ok()) GetLogger("config").Warn("{}", Message(begun));
}

void Reload(const NodeOptions& options, Configurator& configurator) {
  Logger& log = GetLogger("config");
  if (options.config_file.empty()) {
    log.Info("SIGHUP: there is no configuration file to read again");
    return;
  }
  if (configurator.source() != options.config_file) {
    log.Info("SIGHUP: the configuration from {} is in force, {} is not read", configurator.source(),
             options.config_file);
    return;
  }
  configurator.Reload(options.config_file, options.read_again, [&log](const Status& status) {
    if (status.ok()) return;
    log.Warn("SIGHUP: the configuration is unchanged: {}", OneLine(Message(status)));
  });
}

void ToggleDebug() {
  const bool on = ToggleAllDebug();
  GetLogger("cri-resmgr").Info("SIGUSR1: debug messages are {}", on ? "on" : "as configured");
}

std::array<EventLoop::HandlePtr, 4> HandleSignals(EventLoop& loop, FrontDoor& door,
                                                  HandOver& hand_over, EventLoop::Task first,
                                                  EventLoop::Task reload, EventLoop::Task debug) {
  const auto end = [&loop, &door, &hand_over, first = std::move(first),
                    ending = std::make_shared<bool>(false)](pid_t sender) {
    Logger& log = GetLogger("cri-resmgr");
    if (std::exchange(*ending, true)) {
      log.Info("a second signal, from process {}: ending at once", sender);
      loop.Stop();
      return;
    }
    log.Info(
        "ending on a signal from process {}: waiting for the calls in flight; a second signal ends "
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

ReadyNews::ReadyNews(EventLoop& loop, std::string what, std::function<std::string()> runtime_state)
    : what_(std::move(what)), runtime_state_(std::move(runtime_state)) {
  if (const Status status = NotifyReady(); !status.ok()) log_.Warn("{}", Message(status));
  const std::string problem = RuntimeProblem();
  if (problem.empty()) {
    log_.Info("ready: {}", what_);
    return;
  }
  log_.Info("not ready yet: {}; the runtime is away: {}", what_, problem);
  ShowStatus("waiting for the runtime: " + problem);
  timer_ = loop.Every(kRuntimeLookPeriod, [this] { Look(); });
}

std::string ReadyNews::RuntimeProblem() const {
  std::string state = runtime_state_();
  return state == "connected" || state == "not used" ? "" : state;
}

void ReadyNews::Look() {
  if (!RuntimeProblem().empty()) return;
  log_.Info("ready: {}", what_);
  ShowStatus("");
  timer_.reset();
}

void ReadyNews::ShowStatus(const std::string& text) {
  if (const Status status = NotifyStatus(text); !status.ok()) log_.Warn("{}", Message(status));
}

}  // namespace resmgr
