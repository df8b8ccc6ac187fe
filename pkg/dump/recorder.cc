// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/recorder.h"

#include <cmath>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/json.h"
#include "pkg/dump/message_tree.h"

namespace resmgr::dump {

namespace {

using google::protobuf::Map;
using nlohmann::json;

void SetText(json& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

void SetMap(json& object, const char* key, const Map<std::string, std::string>& map) {
  for (const auto& [name, value] : map) {
    if (!IsSecretAnnotation(name)) object[key][name] = value;
  }
}

json Resources(const runtime::v1::LinuxContainerResources& resources) {
  return ToTree(resources, false);
}

json PodOf(const runtime::v1::PodSandboxConfig& config) {
  json pod = json::object();
  SetText(pod, "uid", config.metadata().uid());
  SetText(pod, "name", config.metadata().name());
  SetText(pod, "namespace", config.metadata().namespace_());
  if (config.metadata().attempt() != 0) pod["attempt"] = config.metadata().attempt();
  SetText(pod, "cgroup_parent", config.linux().cgroup_parent());
  SetMap(pod, "labels", config.labels());
  SetMap(pod, "annotations", config.annotations());
  if (config.linux().has_resources()) pod["resources"] = Resources(config.linux().resources());
  if (config.linux().has_overhead()) pod["overhead"] = Resources(config.linux().overhead());
  return pod;
}

json ContainerOf(const runtime::v1::ContainerConfig& config) {
  json container = json::object();
  SetText(container, "name", config.metadata().name());
  container["attempt"] = config.metadata().attempt();
  SetMap(container, "labels", config.labels());
  SetMap(container, "annotations", config.annotations());
  if (config.has_linux()) container["resources"] = Resources(config.linux().resources());
  return container;
}

// Reads the request's data into `call`. All other requests only name a pod or a container.
template <typename Message>
void Read(const Message& message, json& call) {
  if constexpr (requires { message.container_id(); }) {
    call["container"]["id"] = message.container_id();
  } else {
    call["pod"]["id"] = message.pod_sandbox_id();
  }
}

void Read(const runtime::v1::RunPodSandboxRequest& message, json& call) {
  call["pod"] = PodOf(message.config());
  SetText(call["pod"], "runtime_handler", message.runtime_handler());
}

void Read(const runtime::v1::CreateContainerRequest& message, json& call) {
  call["pod"] = PodOf(message.sandbox_config());
  SetText(call["pod"], "id", message.pod_sandbox_id());
  call["container"] = ContainerOf(message.config());
}

void Read(const runtime::v1::UpdateContainerResourcesRequest& message, json& call) {
  json& container = call["container"];
  container["id"] = message.container_id();
  SetMap(container, "annotations", message.annotations());
  if (message.has_linux()) container["resources"] = Resources(message.linux());
}

void Read(const runtime::v1::UpdatePodSandboxResourcesRequest& message, json& call) {
  json& pod = call["pod"];
  pod["id"] = message.pod_sandbox_id();
  if (message.has_resources()) pod["resources"] = Resources(message.resources());
  if (message.has_overhead()) pod["overhead"] = Resources(message.overhead());
}

// The requests that are recorded.
template <typename... Messages>
struct Requests {
  static bool Has(const google::protobuf::Message* type) {
    return ((type == &Messages::default_instance()) || ...);
  }
  // False: the event's request is none of these, is compressed, or is malformed.
  static bool Decode(const Event& event, json& call) {
    return (DecodeAs<Messages>(event, call) || ...);
  }

  template <typename Message>
  static bool DecodeAs(const Event& event, json& call) {
    if (event.plan->types.request != &Message::default_instance()) return false;
    Message message;
    if (event.payload.compressed || !message.ParseFromString(event.payload.bytes)) return false;
    Read(message, call);
    return true;
  }
};
using Recorded =
    Requests<runtime::v1::RunPodSandboxRequest, runtime::v1::CreateContainerRequest,
             runtime::v1::UpdateContainerResourcesRequest,
             runtime::v1::UpdatePodSandboxResourcesRequest, runtime::v1::StartContainerRequest,
             runtime::v1::StopContainerRequest, runtime::v1::RemoveContainerRequest,
             runtime::v1::StopPodSandboxRequest, runtime::v1::RemovePodSandboxRequest>;

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

bool IsRecorded(const MethodTypes& types) {
  return Recorded::Has(types.request);
}

Recorder::Recorder(std::unique_ptr<OutputFile> file, std::chrono::steady_clock::time_point start,
                   std::chrono::system_clock::time_point wall_start, std::atomic<uint64_t>& gaps)
    : gaps_(gaps),
      start_(start),
      header_(fmt::format(
          "{{\"recording\":\"cri-resmgr\",\"version\":1,\"start\":\"{:%Y-%m-%dT%H:%M:%SZ}\"}}\n",
          fmt::gmtime(std::chrono::system_clock::to_time_t(wall_start)))) {
  ContinueIn(std::move(file));
}

void Recorder::ContinueIn(std::unique_ptr<OutputFile> file) {
  file_ = std::move(file);
  file_->TellWritten([this](size_t bytes) { NoteWritten(bytes); });
  buffered_.clear();
  lost_ = {};
  Buffer(header_, {.header = true});
}

void Recorder::Append(std::string_view text, Lines line) {
  TellLost();
  Buffer(text, line);
}

void Recorder::TellLost() {
  const Lines lost = std::exchange(lost_, {});
  if (lost.bytes == 0) return;
  gaps_.fetch_add(1, std::memory_order_relaxed);
  // A file that was begun on a full disk has no header yet.
  if (lost.header) Buffer(header_, {.header = true});
  BufferLoss(lost);
}

void Recorder::Buffer(std::string_view text, Lines line) {
  line.bytes = text.size();
  buffered_.push_back(line);
  file_->Append(text);
}

void Recorder::BufferLoss(const Lines& loss) {
  if (loss.calls > 0)
    Buffer(fmt::format("{{\"lost_calls\":{}}}\n", loss.calls), {.calls = loss.calls});
  if (loss.use > 0) Buffer(fmt::format("{{\"lost_use\":{}}}\n", loss.use), {.use = loss.use});
}

// Called within Buffer and the file's Flush.
void Recorder::NoteWritten(size_t bytes) {
  for (const Lines& line : buffered_) {
    const bool there = line.bytes <= bytes;
    bytes -= there ? line.bytes : bytes;
    if (there) continue;
    lost_.calls += line.calls;
    lost_.use += line.use;
    lost_.header |= line.header;
    lost_.bytes += line.bytes;
  }
  buffered_.clear();
}

void Recorder::Take(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kRequest:
      return Request(event);
    case Event::Kind::kReply:
      return Reply(event);
    case Event::Kind::kEnd:
      return End(event);
    case Event::Kind::kLost:
      return Lost(event);
    case Event::Kind::kUse:
      return Use(event);
    case Event::Kind::kChanged:
    case Event::Kind::kSettings:
      return;
  }
}

void Recorder::Request(const Event& event) {
  json call = json::object();
  if (!Recorded::Decode(event, call)) call["undecodable"] = true;
  calls_.insert_or_assign(event.call, std::move(call));
}

void Recorder::Reply(const Event& event) {
  const auto found = calls_.find(event.call);
  if (found == calls_.end() || event.payload.compressed) return;
  const std::string& bytes = event.payload.bytes;
  if (event.plan->types.reply == &runtime::v1::CreateContainerResponse::default_instance()) {
    runtime::v1::CreateContainerResponse reply;
    if (reply.ParseFromString(bytes))
      SetText(found->second["container"], "id", reply.container_id());
  } else if (event.plan->types.reply == &runtime::v1::RunPodSandboxResponse::default_instance()) {
    runtime::v1::RunPodSandboxResponse reply;
    if (reply.ParseFromString(bytes)) SetText(found->second["pod"], "id", reply.pod_sandbox_id());
  }
}

void Recorder::End(const Event& event) {
  const auto found = calls_.find(event.call);
  if (found == calls_.end()) return;
  const std::string fields = JsonText(found->second);
  Append(fmt::format("{{\"t\":{:.6f},\"op\":{},\"ok\":{},\"code\":{},\"latency\":{:.6f}{}{}\n",
                     Seconds(event.start - start_), JsonText(event.plan->name), event.code == 0,
                     event.code, Seconds(event.at - event.start), fields.size() > 2 ? "," : "",
                     fields.substr(1)),
         {.calls = 1});
  calls_.erase(found);
}

void Recorder::Lost(const Event& event) {
  for (const uint64_t call : event.cut_calls)
    calls_.erase(call);
  TellLost();
  BufferLoss({.calls = event.lost_calls, .use = event.lost_use});
}

void Recorder::Use(const Event& event) {
  json use = json::object();
  for (const RecordedUse& one : event.use) {
    // More digits carry no information and would make recordings longer.
    const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
    json& figures = use[one.container] = json::array({rounded(one.cpus)});
    if (one.pressure) figures.push_back(rounded(*one.pressure));
  }
  Append(fmt::format("{{\"t\":{:.6f},\"op\":\"use\",\"use\":{}}}\n", Seconds(event.at - start_),
                     JsonText(use)),
         {.use = 1});
}

}  // namespace resmgr::dump
