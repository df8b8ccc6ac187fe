// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_hook_server/fake_hook_server.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "pkg/grpc/unary_server.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/thread.h"

namespace resmgr::test {

using hooks::HookPoint;
using hooks::kHookPoints;
using std::chrono::milliseconds;

class FakeHookServer::Impl {
 public:
  explicit Impl(const std::string& socket) {
    UnaryServer::Methods methods;
    for (size_t i = 0; i < kHookPoints; ++i) {
      methods[hooks::MethodOf(static_cast<HookPoint>(i))] = [this, i](const std::string& request,
                                                                      UnaryServer::Reply reply) {
        Serve(i, request, std::move(reply));
      };
    }
    auto server = UnaryServer::Create(loop_, flushes_, socket, std::move(methods));
    if (!server.ok()) {
      std::fprintf(stderr, "fake hook server: %s\n", Describe(server.status()).c_str());
      std::abort();
    }
    server_ = *std::move(server);
    thread_ = StartThread("hook-server", [this] { loop_.Run(); });
  }

  ~Impl() {
    loop_.Stop();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Set(HookPoint point, Answerer answerer, milliseconds delay) {
    const std::lock_guard lock(mutex_);
    Script& script = scripts_.at(static_cast<size_t>(point));
    script.answerer = std::move(answerer);
    script.delay = delay;
  }

  std::vector<std::string> Calls(HookPoint point) const {
    const std::lock_guard lock(mutex_);
    return scripts_.at(static_cast<size_t>(point)).calls;
  }

 private:
  struct Script {
    Answerer answerer = [](const std::string&) { return std::string(); };  // empty: it hangs
    milliseconds delay{0};
    std::vector<std::string> calls;
  };

  // The lock is not held while the test's own function runs.
  void Serve(size_t point, const std::string& request, UnaryServer::Reply reply) {
    Answerer answerer;
    milliseconds delay{0};
    {
      const std::lock_guard lock(mutex_);
      Script& script = scripts_.at(point);
      script.calls.push_back(request);
      answerer = script.answerer;
      delay = script.delay;
    }
    if (!answerer) return;
    if (delay == milliseconds(0)) {
      reply(answerer(request));
      return;
    }
    timers_.push_back(loop_.After(
        delay, [answerer, request, reply = std::move(reply)] { reply(answerer(request)); }));
  }

  mutable std::mutex mutex_;
  std::array<Script, kHookPoints> scripts_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::unique_ptr<UnaryServer> server_;
  std::list<EventLoop::HandlePtr> timers_;  // of delayed answers, until the end
  std::thread thread_;
};

FakeHookServer::FakeHookServer(const std::string& socket) : impl_(std::make_unique<Impl>(socket)) {}

FakeHookServer::~FakeHookServer() = default;

void FakeHookServer::Answer(HookPoint point, Answerer answerer, milliseconds delay) {
  impl_->Set(point, std::move(answerer), delay);
}

void FakeHookServer::Hang(HookPoint point) {
  impl_->Set(point, nullptr, milliseconds(0));
}

std::vector<std::string> FakeHookServer::Calls(HookPoint point) const {
  return impl_->Calls(point);
}

}  // namespace resmgr::test
