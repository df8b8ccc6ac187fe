// SPDX-License-Identifier: Apache-2.0
#include "pkg/kubelet/pod_resources.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/wire.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kGetPodResources = "/v1.PodResourcesLister/Get";
constexpr std::string_view kListPodResources = "/v1.PodResourcesLister/List";

// The result of one question; the thread that asks writes it.
struct Told {
  Status status{};
  std::atomic<bool> known = false;
  // When the call was sent that the kubelet has not answered; the clock's zero: there is none.
  std::atomic<EventLoop::Clock::time_point> sent{};
};

HintFinder::Options FinderOptions(const PodResourcesServer& server) {
  HintFinder::Options options;
  options.deadline = server.timeout;
  return options;
}

// A kubelet whose feature gate is off answers with an error that has no gRPC code of its own, so
// its text is compared.
bool HasNoGet(const Status& status) {
  return status.code() == StatusCode::kUnimplemented ||
         Message(status).find("Get method disabled") != std::string_view::npos;
}

// Kubelets accept ten calls at once, and then one every ten milliseconds.
constexpr milliseconds kTurn{10};
bool IsOutOfTurn(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted &&
         Message(status).find("rate limit") != std::string_view::npos;
}

// The kubelet is asked about more containers than it has turns for, or than there are threads for.
Status NoTurn(const PodResourcesServer& server) {
  return Unavailable("too many containers at once: no turn within {} ms", server.timeout.count());
}

// A call that had less than half of the time, after others or in a queue, shows no hung kubelet.
Status Outcome(const Told& told, const PodResourcesServer& server) {
  if (told.known && told.status.code() != StatusCode::kDeadlineExceeded) return told.status;
  const EventLoop::Clock::time_point sent = told.sent;
  if (sent == EventLoop::Clock::time_point() || EventLoop::Clock::now() - sent < server.timeout / 2)
    return NoTurn(server);
  return DeadlineExceeded("no answer within {} ms", server.timeout.count());
}

bool KnowsNoSuchPod(const Status& status) {
  return status.code() == StatusCode::kNotFound ||
         (status.code() == StatusCode::kUnknown &&
          Message(status).find("not found") != std::string_view::npos);
}

// One question, with a connection and an event loop of its own.
class Exchange {
 public:
  Exchange(const PodResourcesServer& server, Told& told)
      : end_(EventLoop::Clock::now() + server.timeout),
        told_(told),
        client_(loop_, flushes_, server.socket, server.max_answer) {}

  StatusOr<std::string> Run(const PodContainer& container) {
    RESMGR_RETURN_IF_ERROR(client_.Connect([](const Status&) {}));
    StatusOr<std::string> answer = CallInTurn(kGetPodResources, GetPodResourcesRequest(container));
    if (answer.ok() || !HasNoGet(answer.status())) return answer;
    return CallInTurn(kListPodResources, "");
  }

 private:
  // Calls, and repeats the call until the deadline while the kubelet refuses it because of too many
  // calls.
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
    told_.sent = EventLoop::Clock::now();
    client_.Call(path, request, std::max(left, milliseconds(1)), [&](StatusOr<std::string> reply) {
      answer = std::move(reply);
      loop_.Stop();
    });
    loop_.Run();
    if (answer.status().code() != StatusCode::kDeadlineExceeded)
      told_.sent = EventLoop::Clock::time_point();
    return answer;
  }

  const EventLoop::Clock::time_point end_;
  Told& told_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  UnaryClient client_;
};

// The hints for one container, from Get, or from List where the kubelet has no Get (before 1.34,
// unless the feature gate KubeletPodResourcesGet is on). There are none for a pod that the kubelet
// does not know. A kubelet that refuses the call because of too many calls is asked again. The
// error says why the kubelet did not answer. Accesses the file system and waits for the answer, so
// it must not be called on the loop.
StatusOr<std::vector<LocalityHint>> AskPodResources(const PodResourcesServer& server,
                                                    const PodContainer& container, Told& told) {
  const StatusOr<std::string> answer = Exchange(server, told).Run(container);
  if (answer.ok()) return ReadPodDevices(*answer, container, server.nodes);
  if (KnowsNoSuchPod(answer.status())) return std::vector<LocalityHint>();
  if (IsOutOfTurn(answer.status())) return NoTurn(server);
  return answer.status();
}

// Longest name of a resource in Kubernetes, in bytes: a domain, "/" and a label.
constexpr size_t kMaxResourceName = 253 + 1 + 63;

bool IsResourceName(std::string_view name) {
  const auto graphic = [](char c) { return c > ' ' && c < '\x7f'; };
  return !name.empty() && name.size() <= kMaxResourceName && std::ranges::all_of(name, graphic);
}

// Reads the answer from the outside in; a message that is not protobuf invalidates the whole
// answer.
class AnswerReader {
 public:
  AnswerReader(const PodContainer& container, const NodeSet& nodes)
      : container_(container), nodes_(nodes) {}

  void ReadAnswer(std::string_view answer) {
    WireReader reader(answer);
    while (reader.Next())
      if (reader.field() == 1) ReadPod(reader.bytes());
    Check(reader);
  }
  bool failed() const { return failed_; }
  std::vector<LocalityHint> TakeHints() { return std::move(hints_); }

 private:
  void ReadPod(std::string_view pod) {
    std::string_view name;
    std::string_view namespace_name;
    WireReader reader(pod);
    while (reader.Next()) {
      if (reader.field() == 1) name = reader.bytes();
      if (reader.field() == 2) namespace_name = reader.bytes();
    }
    Check(reader);
    if (name != container_.pod || namespace_name != container_.namespace_name) return;
    WireReader again(pod);
    while (again.Next())
      if (again.field() == 3) ReadContainer(again.bytes());
  }

  void ReadContainer(std::string_view container) {
    std::string_view name;
    WireReader reader(container);
    while (reader.Next())
      if (reader.field() == 1) name = reader.bytes();
    Check(reader);
    if (name != container_.container) return;
    WireReader again(container);
    while (again.Next())
      if (again.field() == 2) ReadDevices(again.bytes());
  }

  // Reads one entry of the devices. Kubelets send one for each device and, if a device is near to
  // several nodes, one for each of these.
  void ReadDevices(std::string_view devices) {
    std::string_view resource;
    NodeSet near;
    WireReader reader(devices);
    while (reader.Next()) {
      if (reader.field() == 1) resource = reader.bytes();
      if (reader.field() == 3) ReadTopology(reader.bytes(), near);
    }
    Check(reader);
    if (near.empty() || !IsResourceName(resource)) return;
    const std::string source = "pod-resources podresourceapi:" + std::string(resource);
    const auto known = std::ranges::find(hints_, source, &LocalityHint::source);
    if (known != hints_.end()) {
      known->nodes |= near;
    } else if (hints_.size() < kMaxHints) {
      hints_.push_back({.source = source, .cpus = {}, .nodes = std::move(near)});
    }
  }

  void ReadTopology(std::string_view topology, NodeSet& near) {
    WireReader reader(topology);
    while (reader.Next())
      if (reader.field() == 1 && reader.is_bytes()) ReadNode(reader.bytes(), near);
    Check(reader);
  }

  void ReadNode(std::string_view node, NodeSet& near) {
    uint64_t id = 0;  // absent means 0 in protobuf
    WireReader reader(node);
    while (reader.Next())
      if (reader.field() == 1) id = reader.number();
    Check(reader);
    if (id <= NodeSet::kMaxId && nodes_.Contains(static_cast<int>(id)))
      near.Add(static_cast<int>(id));
  }

  void Check(const WireReader& reader) { failed_ |= reader.failed(); }

  const PodContainer& container_;
  const NodeSet& nodes_;
  std::vector<LocalityHint> hints_;
  bool failed_ = false;
};

}  // namespace

PodResources::PodResources(Options options)
    : options_(std::move(options)), finder_(options_.loop, FinderOptions(options_.server)) {}

void PodResources::SetWanted(bool wanted) {
  if (wanted == std::exchange(wanted_, wanted)) return;
  trial_.reset();
  again_.reset();
  problem_.reset();
  wrong_answer_ = false;
  if (wanted_) Try();
}

std::unique_ptr<HintFinder::Question> PodResources::Ask(
    const Pod& pod, const std::string& container, std::function<void(HintFinder::Hints)> answer) {
  if (options_.server.socket.empty() || options_.loop.Now() < paused_until_) return nullptr;
  return AskFor({.namespace_name = pod.namespace_name, .pod = pod.name, .container = container},
                /*trial=*/false, std::move(answer));
}

std::vector<Problem> PodResources::problems() const {
  if (!wanted_ || !problem_) return {};
  return {*problem_};
}

std::unique_ptr<HintFinder::Question> PodResources::AskFor(
    PodContainer container, bool trial, std::function<void(HintFinder::Hints)> answer) {
  const auto told = std::make_shared<Told>();
  auto find = [server = options_.server, container = std::move(container), told] {
    StatusOr<HintFinder::Hints> found = AskPodResources(server, container, *told);
    told->status = found.status();
    told->known = true;
    return found.ok() ? *std::move(found) : HintFinder::Hints();
  };
  auto finish = [this, alive = lifetime_.token(), trial, told,
                 answer = std::move(answer)](HintFinder::Hints hints) {
    if (!alive.expired()) Note(Outcome(*told, options_.server), trial);
    answer(std::move(hints));
  };
  return finder_.Ask(std::move(find), std::move(finish));
}

// Asks about a pod that does not exist: any answer shows that the kubelet serves these questions.
void PodResources::Try() {
  if (options_.server.socket.empty()) {
    Note(FailedPrecondition("-pod-resources-socket is disabled"), true);
    return;
  }
  trial_ = AskFor({}, /*trial=*/true, [](const HintFinder::Hints&) {});
  if (trial_ == nullptr) Note(DeadlineExceeded("earlier questions are not answered"), true);
}

void PodResources::Note(const Status& status, bool trial) {
  Logger& log = GetLogger("pod-resources");
  if (status.ok()) {
    if (trial && wrong_answer_) return;
    if (problem_) log.Info("the kubelet answers at {} again", options_.server.socket);
    problem_.reset();
    wrong_answer_ = false;
    again_.reset();
    paused_until_ = {};
    return;
  }
  if (status.code() == StatusCode::kDeadlineExceeded)
    paused_until_ = options_.loop.Now() + options_.pause;
  wrong_answer_ = !trial && status.code() != StatusCode::kDeadlineExceeded &&
                  status.code() != StatusCode::kUnavailable;
  const bool first = !problem_;
  if (first) {
    problem_ = Problem{
        .kind = "socket",
        .since = std::chrono::system_clock::now(),
        .next = "check that the kubelet runs, and that -pod-resources-socket names its socket"};
  }
  problem_->message = fmt::format(
      "the kubelet's pod resources are not known, so containers are placed without hints from "
      "them: {}",
      Printable(Message(status)));
  if (first) log.Warn("{}; {}", problem_->message, problem_->next);
  if (wanted_) again_ = options_.loop.After(options_.look_again, [this] { Try(); });
}

std::string GetPodResourcesRequest(const PodContainer& container) {
  std::string request;
  {
    FieldWriter fields(request);
    fields.Bytes(1, container.pod);
    fields.Bytes(2, container.namespace_name);
  }
  return request;
}

StatusOr<std::vector<LocalityHint>> ReadPodDevices(std::string_view answer,
                                                   const PodContainer& container,
                                                   const NodeSet& nodes) {
  AnswerReader reader(container, nodes);
  reader.ReadAnswer(answer);
  if (reader.failed()) return InvalidArgument("the answer is no message of pod resources");
  return reader.TakeHints();
}

}  // namespace resmgr
