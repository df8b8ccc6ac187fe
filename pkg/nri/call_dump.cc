// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/call_dump.h"

#include <chrono>
#include <utility>

namespace resmgr::nri {

class CallDump::Shown {
 public:
  Shown(dump::Dumper& dumper, uint64_t id, std::string path, bool intercepted,
        dump::Payload request)
      : dumper_(dumper),
        path_(std::move(path)),
        call_{.id = id,
              .path = path_,
              .intercepted = intercepted,
              .start = std::chrono::steady_clock::now(),
              .wall_start = std::chrono::system_clock::now()} {
    dumper_.OnRequest(call_, std::move(request));
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;
  // The call ended without an answer, because the caller or the connection was gone.
  ~Shown() {
    if (!answered_) End(Unavailable("the connection was lost"));
  }

  void End(const Answer& answer) {
    answered_ = true;
    if (answer.ok()) dumper_.OnReply(call_, dump::Payload(*answer));
    dumper_.OnEnd(call_, static_cast<int>(answer.status().code()), Message(answer.status()));
  }

 private:
  dump::Dumper& dumper_;
  const std::string path_;
  const dump::CallRef call_;
  bool answered_ = false;
};

std::shared_ptr<CallDump::Shown> CallDump::Begin(std::string path, const std::string& payload,
                                                 bool intercepted) {
  const dump::Interest interest = dumper_->WantsMethod(path);
  if (interest == dump::Interest::kNone) return nullptr;
  return std::make_shared<Shown>(
      *dumper_, ++last_call_, std::move(path), intercepted,
      interest == dump::Interest::kMessages ? dump::Payload(payload) : dump::Payload());
}

ttrpc::Server::Method CallDump::Show(std::string path, ttrpc::Server::Method method) {
  if (dumper_ == nullptr) return method;
  return [this, path = std::move(path), method = std::move(method)](
             std::string payload, std::chrono::nanoseconds timeout, ttrpc::Server::Reply reply) {
    auto shown = Begin(path, payload, /*intercepted=*/true);
    if (shown == nullptr) return method(std::move(payload), timeout, std::move(reply));
    method(std::move(payload), timeout,
           [shown = std::move(shown), reply = std::move(reply)](const Answer& answer) {
             shown->End(answer);
             reply(answer);
           });
  };
}

std::function<void(CallDump::Answer)> CallDump::Show(std::string path, const std::string& payload,
                                                     std::function<void(Answer)> done) {
  if (dumper_ == nullptr) return done;
  auto shown = Begin(std::move(path), payload, /*intercepted=*/false);
  if (shown == nullptr) return done;
  return [shown = std::move(shown), done = std::move(done)](Answer answer) {
    shown->End(answer);
    done(std::move(answer));
  };
}

}  // namespace resmgr::nri
