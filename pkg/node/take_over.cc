// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/take_over.h"

#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "pkg/sys/inherited_sockets.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kExitPatience{1'000};
constexpr std::string_view kNo = "no ";
constexpr std::string_view kAll = "all ";

Status Unexpected(std::string_view message) {
  if (message.starts_with(kNo))
    return FailedPrecondition("the daemon that serves keeps its sockets: {}",
                              Printable(message.substr(kNo.size())));
  return InvalidArgument("the serving daemon sent \"{}\" out of turn", Printable(message));
}

}  // namespace

StatusOr<std::unique_ptr<TakeOver>> TakeOver::Begin(Options options) {
  StatusOr<UniqueFd> socket = ConnectUnix(options.socket);
  if (!socket.ok()) {
    GetLogger("take-over")
        .Info("no daemon is there to take over from: {}", Message(socket.status()));
    return nullptr;
  }
  HandOverChannel channel(*std::move(socket), HandOverChannel::Files::kTake);
  RESMGR_ASSIGN_OR_RETURN(const HandOverChannel::Peer peer, channel.peer());
  if (peer.user != ::geteuid())
    return FailedPrecondition("{} is served by user {}, and this daemon runs as user {}",
                              options.socket, peer.user, ::geteuid());
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, peer.process, 0)));
  std::unique_ptr<TakeOver> one(
      new TakeOver(std::move(options), std::move(channel), std::move(process)));
  RESMGR_RETURN_IF_ERROR(one->ReceiveSockets());
  return one;
}

Status TakeOver::ReceiveSockets() {
  // A failure is ignored, since the other daemon may have sent its reason.
  (void)channel_.Send("take-over 1 " + options_.version);
  std::vector<OpenSockets::Copy> sockets;
  for (;;) {
    RESMGR_ASSIGN_OR_RETURN(const std::string message, channel_.Await(options_.answer));
    if (message.starts_with(kAll)) {
      GetLogger("take-over")
          .Info("{} sockets of cri-resmgr {} are here", sockets.size(),
                Printable(message.substr(kAll.size())));
      break;
    }
    auto socket = channel_.ReadSocket(message);
    if (!socket.ok()) return Unexpected(message);
    sockets.push_back(*std::move(socket));
  }
  for (OpenSockets::Copy& socket : sockets)
    InheritedSockets::Instance().Add(std::move(socket.path), std::move(socket.socket));
  return OkStatus();
}

Status TakeOver::Finish(const std::vector<std::string>& paths) {
  Logger& log = GetLogger("take-over");
  // A failure is ignored: the other daemon has sent its last message or has died, and its sockets
  // and claims belong to this daemon alone then.
  (void)channel_.Send("drain");
  const StatusOr<std::string> drained = channel_.Await(options_.drain);
  if (drained.ok() && *drained != "drained") return Unexpected(*drained);
  if (!drained.ok() && drained.status().code() != StatusCode::kUnavailable) return drained.status();
  if (!drained.ok()) {
    log.Warn("the other daemon ended before it was asked to; this one serves");
  } else {
    (void)channel_.Send("end");
    const StatusOr<std::string> word = channel_.Await(options_.answer);
    if (word.ok()) return Unexpected(*word);
    if (word.status().code() != StatusCode::kUnavailable)
      log.Warn("the other daemon has not ended yet: {}", Message(word.status()));
  }
  WaitForExit();
  DropInherited(paths);
  return OkStatus();
}

// It has closed the connection, but the kernel drops its claim on the state with the last of its
// files. This takes milliseconds, and nothing is lost if it takes longer.
void TakeOver::WaitForExit() const {
  if (!process_.valid()) return;
  pollfd ended{.fd = process_.get(), .events = POLLIN, .revents = 0};
  (void)::poll(&ended, 1, static_cast<int>(kExitPatience.count()));
}

}  // namespace resmgr
