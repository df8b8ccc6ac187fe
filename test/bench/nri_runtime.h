// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "pkg/api/nri.pb.h"
#include "pkg/nri/protocol.h"
#include "pkg/sys/event_loop.h"
#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/server.h"
#include "test/bench/figures.h"
#include "test/bench/server.h"

namespace resmgr::bench {

namespace api = ::nri::pkg::api::v1alpha1;

// Time for each call, the first ones included: under a profiler each takes many times as long.
constexpr std::chrono::seconds kNriPatience{60};

// A runtime with NRI 0.6.1, as containerd 1.7.24 has it.
class NriRuntime {
 public:
  NriRuntime(EventLoop& loop, UniqueFd socket)
      : loop_(loop),
        trunk_(loop, std::move(socket), [](const Status& why) { Fail(Describe(why)); }),
        plugin_(loop, trunk_, nri::kPluginConnection, budget_),
        runtime_(loop, trunk_, nri::kRuntimeConnection, budget_, nri::kRuntimeService, Methods()) {}

  // Waits until the plugin has registered, is configured and has these pods and containers.
  void Begin(const api::SynchronizeRequest& inventory) {
    while (!registered_)
      loop_.Run();
    api::ConfigureRequest configure;
    configure.set_runtime_name("containerd");
    configure.set_runtime_version("1.7.24");
    Call<api::ConfigureResponse>("Configure", configure);
    Call<api::SynchronizeResponse>("Synchronize", inventory);
    AwaitRest();
  }

  template <typename Response, typename Request>
  Response Call(const char* method, const Request& request, double* took = nullptr) {
    std::optional<StatusOr<std::string>> answer;
    const std::string payload = request.SerializeAsString();
    const auto begin = std::chrono::steady_clock::now();
    plugin_.Call(nri::kPluginService, method, payload, kNriPatience,
                 [&](StatusOr<std::string> told) {
                   answer = std::move(told);
                   loop_.Stop();
                 });
    while (!answer)
      loop_.Run();
    if (took != nullptr) *took = Micros(std::chrono::steady_clock::now() - begin);
    Response response;
    if (!answer->ok()) Fail(std::string(method) + ": " + Describe(answer->status()));
    if (!response.ParseFromString(**answer)) Fail(std::string(method) + ": no protobuf");
    return response;
  }

 private:
  ttrpc::Server::Methods Methods() {
    using Reply = ttrpc::Server::Reply;
    return {{"RegisterPlugin",
             [this](const std::string&, std::chrono::nanoseconds, const Reply& reply) {
               registered_ = true;
               reply(std::string());
               loop_.Stop();
             }},
            {"UpdateContainers",
             [this](const std::string&, std::chrono::nanoseconds, const Reply& reply) {
               ++updates_;
               reply(std::string());
             }}};
  }
  // Waits until no update came for a while: a first start moves all containers.
  void AwaitRest() {
    constexpr std::chrono::milliseconds kWhile{300};
    for (int64_t before = -1; before != updates_;) {
      before = updates_;
      const auto timer = loop_.After(kWhile, [this] { loop_.Stop(); });
      loop_.Run();
    }
  }

  EventLoop& loop_;
  bool registered_ = false;
  int64_t updates_ = 0;  // calls
  ttrpc::MemoryBudget budget_;
  ttrpc::Multiplexer trunk_;
  ttrpc::Client plugin_;
  ttrpc::Server runtime_;
};

}  // namespace resmgr::bench
