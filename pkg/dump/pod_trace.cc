// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/pod_trace.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/wire.h"

namespace resmgr::dump {
namespace {

// Shorter ids are not looked for in requests: so short a text is in too many of them.
constexpr size_t kShortestId = 8;

// The byte before a field of bytes in protobuf's wire format.
constexpr char TagOf(uint32_t field) {
  return static_cast<char>(field << 3 | 2);
}

// A field of protobuf's wire format with this text.
std::string TextField(uint32_t field, std::string_view text) {
  std::string bytes;
  FieldWriter(bytes).Bytes(field, text);
  return bytes;
}

bool Contains(std::string_view bytes, std::string_view part) {
  return bytes.find(part) != std::string_view::npos;
}

// The text of field 1, which is the new object's id in replies of creations; "" without one.
std::string_view FirstText(std::string_view reply) {
  if (reply.size() < 2 || reply[0] != '\x0a') return "";
  const auto size = static_cast<unsigned char>(reply[1]);
  return size < 0x80 && reply.size() >= size_t{2} + size ? reply.substr(2, size) : "";
}

// Whether `bytes` have the name and then the namespace as fields of one message, with at most a
// short uid between them.
bool HasNames(std::string_view bytes, std::string_view pod, char uid_tag,
              std::string_view name_space) {
  for (size_t at = bytes.find(pod); at != bytes.npos; at = bytes.find(pod, at + 1)) {
    std::string_view rest = bytes.substr(at + pod.size());
    if (rest.size() >= 2 && rest[0] == uid_tag) {
      const size_t uid = static_cast<unsigned char>(rest[1]);
      rest = uid < 0x80 && rest.size() >= 2 + uid ? rest.substr(2 + uid) : "";
    }
    if (rest.starts_with(name_space)) return true;
  }
  return false;
}

// Whether the body of a creation at the Docker API has the labels by which dockershim and
// cri-dockerd mark containers of the pod.
bool HasPodLabels(std::string_view body, std::string_view name_space, std::string_view pod) {
  constexpr std::string_view kPodLabel = "io.kubernetes.pod.name";
  if (!Contains(body, kPodLabel)) return false;
  const std::optional<nlohmann::json> create = ParseJson(body);
  return create && json_path::TextAt(*create, {"Labels", kPodLabel}) == pod &&
         json_path::TextAt(*create, {"Labels", "io.kubernetes.pod.namespace"}) == name_space;
}

bool IsNri(const MethodTypes& types) {
  return types.request != nullptr && types.request->GetTypeName().starts_with("nri.");
}

// The ids of the objects that an event of NRI is about: requests have them in `pod` and
// `container`.
std::vector<std::string> IdsOfNriEvent(const google::protobuf::Message& type,
                                       const std::string& request) {
  const std::unique_ptr<google::protobuf::Message> message(type.New());
  if (!message->ParseFromString(request)) return {};
  std::vector<std::string> ids;
  for (const char* const name : {"pod", "container"}) {
    const auto* const field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->message_type() == nullptr || field->is_repeated()) continue;
    const auto* const id = field->message_type()->FindFieldByName("id");
    const auto& object = message->GetReflection()->GetMessage(*message, field);
    ids.push_back(object.GetReflection()->GetString(object, id));
  }
  return ids;
}

// The id of the object that a call has created, from the reply; "" for replies of other methods.
std::string MadeId(std::string_view method, std::string_view reply) {
  if (method == "RunPodSandbox" || method == "CreateContainer")
    return std::string(FirstText(reply));
  if (method != "ContainerCreate") return "";
  const std::optional<nlohmann::json> made = ParseJson(reply);
  return made ? json_path::TextAt(*made, {"Id"}) : "";
}

}  // namespace

PodTrace::PodTrace(std::string_view name_space, std::string_view pod, std::vector<std::string> ids)
    : name_space_(name_space),
      pod_(pod),
      docker_name_(fmt::format("_{}_{}_", pod, name_space)),
      names_({{TextField(1, pod), TagOf(2), TextField(3, name_space)},
              {TextField(2, pod), TagOf(3), TextField(4, name_space)}}),
      ids_(std::move(ids)),
      text_([](bool, std::string_view) {}) {
  std::erase_if(ids_, [](const std::string& id) { return id.size() < kShortestId; });
  text_.set_lines([this](std::string_view line) { Append(line); });
}

bool PodTrace::IsAbout(const Payload& payload) const {
  const std::string_view request = payload.bytes;
  const auto names = [request](const Names& each) {
    return HasNames(request, each.pod, each.uid_tag, each.name_space);
  };
  const bool named = payload.encoding == "json" ? Contains(request, docker_name_) ||
                                                      HasPodLabels(request, name_space_, pod_)
                                                : std::ranges::any_of(names_, names);
  return named || std::ranges::any_of(
                      ids_, [request](const std::string& id) { return Contains(request, id); });
}

void PodTrace::Learn(std::string id) {
  if (id.size() < kShortestId || ids_.size() >= kMostIds) return;
  if (std::ranges::find(ids_, id) == ids_.end()) ids_.push_back(std::move(id));
}

void PodTrace::LearnFrom(const Event& event) {
  const std::string& message = event.payload.bytes;
  if (!IsNri(event.plan->types)) {
    if (event.kind == Event::Kind::kReply) Learn(MadeId(event.plan->name, message));
  } else if (event.kind == Event::Kind::kRequest) {
    for (std::string& id : IdsOfNriEvent(*event.plan->types.request, message))
      Learn(std::move(id));
  }
}

void PodTrace::Take(Event& event) {
  if (event.plan == nullptr) return;
  const std::lock_guard lock(calls_mutex_);
  if (event.kind == Event::Kind::kRequest && IsAbout(event.payload)) {
    // The oldest call is the likeliest one whose end was dropped for want of room.
    if (calls_.size() == kMostCalls) calls_.erase(calls_.begin());
    calls_.insert(event.call);
  }
  if (!calls_.contains(event.call)) return;
  auto full = std::make_shared<MethodPlan>(*event.plan);
  full->target = Target::kFull;
  const std::shared_ptr<const MethodPlan> plan = std::exchange(event.plan, std::move(full));
  LearnFrom(event);
  if (event.kind == Event::Kind::kEnd) calls_.erase(event.call);
  text_.Take(event);
  event.plan = plan;
}

// Called within Take.
void PodTrace::Append(std::string_view line) {
  const std::lock_guard lock(piece_mutex_);
  if (piece_.text.size() + line.size() > kMostText) {
    ++piece_.lost_lines;
  } else {
    piece_.text += line;
  }
}

void PodTrace::NoteLostCall() {
  const std::lock_guard lock(piece_mutex_);
  ++piece_.lost_calls;
}

PodTrace::Piece PodTrace::TakeText(size_t most) {
  const std::lock_guard lock(piece_mutex_);
  if (piece_.text.size() <= most) return std::exchange(piece_, {});
  size_t end = piece_.text.rfind('\n', most - 1);
  if (end == std::string::npos) end = piece_.text.find('\n');
  Piece taken = {.text = piece_.text.substr(0, end + 1),
                 .lost_lines = std::exchange(piece_.lost_lines, 0),
                 .lost_calls = std::exchange(piece_.lost_calls, 0)};
  piece_.text.erase(0, taken.text.size());
  taken.more = !piece_.text.empty();
  return taken;
}

}  // namespace resmgr::dump
