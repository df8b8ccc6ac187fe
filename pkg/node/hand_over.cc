// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/hand_over.h"

#include <utility>

#include <poll.h>
#include <sys/syscall.h>

#include "pkg/base/parse.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

constexpr std::string_view kAsk = "take-over 1 ";
constexpr mode_t kTakeOverMode = 0600;
// Pause after file descriptors ran out, and between attempts to serve again.
constexpr std::chrono::milliseconds kTryAgain{1'000};

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

HandOver::HandOver(Options options)
    : options_(std::move(options)),
      log_(GetLogger("take-over")),
      acceptor_(options_.loop, {.take = [this](UniqueFd socket) { Begin(std::move(socket)); },
                                .failed =
                                    [this](const Status& why) {
                                      log_.Warn("cannot accept a connection: {}", Message(why));
                                    },
                                .pause = kTryAgain}),
      served_(
          options_.loop, options_.socket,
          [this](ListeningSocket listener) { Serve(std::move(listener)); },
          [](const std::string& path) { return ListeningSocket::Create(path, kTakeOverMode); }) {}

HandOver::~HandOver() = default;

void HandOver::Stop() {
  acceptor_.Stop();
  deadline_.reset();
  resume_again_.reset();
  step_ = Step::kEnding;
}

void HandOver::Serve(ListeningSocket listener) {
  if (step_ != Step::kEnding) acceptor_.Listen(std::move(listener));
}

void HandOver::Begin(UniqueFd socket) {
  HandOverChannel channel(std::move(socket), HandOverChannel::Files::kRefuse);
  const auto peer = channel.peer();
  std::string why;
  if (!peer.ok()) {
    why = Message(peer.status());
  } else if (peer->user != options_.user) {
    why = fmt::format("user {} may not: this daemon runs as user {}", peer->user, options_.user);
  } else if (other_) {
    why = fmt::format("process {} is taking over already", other_process_);
  } else if (!options_.refusal.empty()) {
    why = options_.refusal;
  }
  if (!why.empty()) {
    log_.Warn("the sockets are not handed over: {}", why);
    (void)channel.Send("no " + why);
    return;
  }
  other_ = std::move(channel);
  other_process_ = peer->process;
  watch_ = options_.loop.Watch(other_->fd(), EventLoop::kReadable, [this](int) { Read(); });
  Expect(Step::kAsked, "says nothing");
}

void HandOver::Expect(Step step, std::string_view what) {
  step_ = step;
  deadline_ = options_.loop.After(options_.patience, [this, what] {
    Abandon(DeadlineExceeded("it {} for {} ms", what, options_.patience.count()));
  });
}

void HandOver::Read() {
  while (other_) {
    const auto message = other_->Next();
    // The other daemon is committed, or this one stops: further messages are ignored.
    if (step_ == Step::kEnding) {
      if (!message.ok()) watch_.reset();
      if (!message.ok() || !message->has_value()) return;
      continue;
    }
    if (message.ok() && !message->has_value()) return;
    const Status status = message.ok() ? OnMessage(**message) : message.status();
    if (!status.ok()) Abandon(status);
  }
}

Status HandOver::OnMessage(std::string_view message) {
  if (step_ == Step::kAsked && message.starts_with(kAsk)) return Offer(message.substr(kAsk.size()));
  if (step_ == Step::kOffered && message == "drain") {
    Pause();
    return OkStatus();
  }
  if (step_ == Step::kPaused && message == "end") {
    log_.Info("process {} serves from now on", other_process_);
    Stop();
    options_.end();
    return OkStatus();
  }
  return InvalidArgument("it sent \"{}\" out of turn", Printable(message));
}

Status HandOver::Offer(std::string_view version) {
  log_.Info("process {}, cri-resmgr {}, takes over", other_process_, Printable(version));
  RESMGR_ASSIGN_OR_RETURN(copies_, OpenSockets::Instance().Share());
  for (const OpenSockets::Copy& copy : copies_)
    RESMGR_RETURN_IF_ERROR(other_->SendSocket(copy));
  RESMGR_RETURN_IF_ERROR(other_->Send("all " + options_.version));
  Expect(Step::kOffered, "does not get ready");
  return OkStatus();
}

void HandOver::Pause() {
  step_ = Step::kPausing;
  deadline_.reset();
  resume_again_.reset();
  options_.door.Pause([this, pause = ++pauses_] {
    if (step_ != Step::kPausing || pause != pauses_) return;
    if (const Status told = other_->Send("drained"); !told.ok()) return Abandon(told);
    Expect(Step::kPaused, "does not go on");
  });
}

void HandOver::Abandon(const Status& why) {
  log_.Warn("process {} has not taken over, this daemon continues to serve: {}", other_process_,
            Message(why));
  const bool paused = step_ == Step::kPausing || step_ == Step::kPaused;
  step_ = Step::kServing;
  (void)other_->Send(fmt::format("no {}", Message(why).substr(0, 256)));
  watch_.reset();
  deadline_.reset();
  other_.reset();
  OpenSockets::Instance().TakeBack();
  for (OpenSockets::Copy& copy : copies_) {
    if (OpenSockets::Instance().Has(copy.path)) continue;
    InheritedSockets::Instance().Add(copy.path, std::move(copy.socket));
  }
  copies_.clear();
  if (paused) Resume();
}

void HandOver::Resume() {
  if (const Status resumed = options_.door.Resume(); !resumed.ok()) {
    log_.Error("cannot continue to serve, retrying: {}", Message(resumed));
    resume_again_ = options_.loop.After(kTryAgain, [this] { Resume(); });
  }
}

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
  // If sending fails, the other daemon may have sent its reason, so reading goes on.
  (void)channel_.Send("take-over 1 " + options_.version);
  std::vector<OpenSockets::Copy> sockets;
  for (;;) {
    RESMGR_ASSIGN_OR_RETURN(const std::string message, channel_.Await(options_.answer));
    if (message.starts_with(kAll)) {
      GetLogger("take-over")
          .Info("got {} sockets of cri-resmgr {}", sockets.size(),
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
  // If sending fails, the other daemon has sent its last message or has died; if it died, this
  // daemon now has its sockets and claims alone.
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

// Waits briefly for the other daemon's exit. It has closed the connection, but the kernel drops its
// claim on the state only with its last file. This takes milliseconds, and nothing is lost if it
// takes longer.
void TakeOver::WaitForExit() const {
  if (!process_.valid()) return;
  pollfd ended{.fd = process_.get(), .events = POLLIN, .revents = 0};
  (void)::poll(&ended, 1, static_cast<int>(kExitPatience.count()));
}

}  // namespace resmgr
