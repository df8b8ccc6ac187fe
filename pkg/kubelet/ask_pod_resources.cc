// SPDX-License-Identifier: Apache-2.0
#include "pkg/kubelet/ask_pod_resources.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

// Kubelets answer with errors of Go's that have no code of their own.
bool HasNoGet(const Status& status) {
  return status.code() == StatusCode::kUnimplemented ||
         Message(status).find("Get method disabled") != std::string_view::npos;
}

// A kubelet takes ten calls at once, and then one in ten milliseconds.
constexpr milliseconds kTurn{10};
bool IsOutOfTurn(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted &&
         Message(status).find("rate limit") != std::string_view::npos;
}

bool KnowsNoSuchPod(const Status& status) {
  return status.code() == StatusCode::kNotFound ||
         (status.code() == StatusCode::kUnknown &&
          Message(status).find("not found") != std::string_view::npos);
}

// One question over a connection of its own, on an event loop of its own.
class Exchange {
 public:
  explicit Exchange(const PodResourcesServer& server)
      : end_(EventLoop::Clock::now() + server.timeout),
        client_(loop_, flushes_, server.socket, server.max_answer) {}

  StatusOr<std::string> Run(const PodContainer& container) {
    RESMGR_RETURN_IF_ERROR(client_.Connect([](const Status&) {}));
    StatusOr<std::string> answer = CallInTurn(kGetPodResources, GetPodResourcesRequest(container));
    if (answer.ok() || !HasNoGet(answer.status())) return answer;
    return CallInTurn(kListPodResources, "");
  }

 private:
  // Calls, and repeats the call within the deadline while the kubelet has too many calls.
  StatusOr<std::string> CallInTurn(std::string_view path, const std::string& request) {
    StatusOr<std::string> answer = Call(path, request);
    while (!answer.ok() && IsOutOfTurn(answer.status()) && EventLoop::Clock::now() + kTurn < end_) {
      const EventLoop::HandlePtr turn = loop_.After(kTurn, [this] { loop_.Stop(); });
      loop_.Run();
      answer = Call(path, request);
    }
    return answer;
  }

  StatusOr<std::string> Call(std::string_view path, const std::string& request) {
    const auto left = std::chrono::duration_cast<milliseconds>(end_ - EventLoop::Clock::now());
    StatusOr<std::string> answer = Unavailable("no answer");
    client_.Call(path, request, std::max(left, milliseconds(1)), [&](StatusOr<std::string> reply) {
      answer = std::move(reply);
      loop_.Stop();
    });
    loop_.Run();
    return answer;
  }

  const EventLoop::Clock::time_point end_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  UnaryClient client_;
};

}  // namespace

StatusOr<std::vector<LocalityHint>> AskPodResources(const PodResourcesServer& server,
                                                    const PodContainer& container) {
  const StatusOr<std::string> answer = Exchange(server).Run(container);
  if (answer.ok()) return ReadPodDevices(*answer, container, server.nodes);
  if (KnowsNoSuchPod(answer.status())) return std::vector<LocalityHint>();
  // The last call had only the rest of the deadline.
  if (answer.status().code() == StatusCode::kDeadlineExceeded)
    return DeadlineExceeded("no answer within {} ms", server.timeout.count());
  return answer.status();
}

}  // namespace resmgr
