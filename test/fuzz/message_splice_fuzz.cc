// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/message_differencer.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/wire.h"
#include "pkg/cri/message_splice.h"

// The first byte is the number of edits, each of which takes two bytes: its kind, and its key and
// value. The rest is a CreateContainerRequest.
namespace {

using resmgr::FieldPath;
using resmgr::KeyedField;
using resmgr::MessageSplice;
using resmgr::WireReader;
using ::runtime::v1::ContainerConfig;
using ::runtime::v1::CreateContainerRequest;
using ::runtime::v1::LinuxContainerResources;

constexpr FieldPath kConfig{2};
constexpr FieldPath kResources{2, 15, 1};
constexpr KeyedField kEnvs{.field = 6, .key = 1};
constexpr KeyedField kMounts{.field = 7, .key = 1};
constexpr KeyedField kDevices{.field = 8, .key = 1};
constexpr KeyedField kLabels{.field = 9, .key = 1};
constexpr KeyedField kUnified{.field = 9, .key = 1};
constexpr std::array<std::string_view, 6> kTexts = {
    "", "A", "PATH", "/data", "app", "a text that is longer than most of the others here"};

// Each edit, carried out by a MessageSplice and by the setters of the generated messages.
class Edits {
 public:
  explicit Edits(CreateContainerRequest* reference) : reference_(reference) {}

  const MessageSplice& splice() const { return splice_; }
  // Whether an edit was for the field with this path.
  bool Touched(const std::vector<uint32_t>& path) const { return touched_.contains(path); }

  void Add(uint8_t what, uint8_t with) {
    const std::string key(kTexts.at(with % kTexts.size()));
    const std::string value(kTexts.at(with / kTexts.size() % kTexts.size()));
    switch (what % 15) {
      case 0:
        return Pair(kConfig, kEnvs, key, value, *config().mutable_envs());
      case 1:
        return Remove(kEnvs, key, &ContainerConfig::mutable_envs, KeyOfPair);
      case 2:
        return PutMount(key, value);
      case 3:
        return Remove(kMounts, key, &ContainerConfig::mutable_mounts, KeyOfPath);
      case 4:
        return PutDevice(key, value);
      case 5:
        return Remove(kDevices, key, &ContainerConfig::mutable_devices, KeyOfPath);
      case 6:
        return MapPair(kConfig, kLabels, key, value, *config().mutable_labels());
      case 7:
        Touch({2, 9});
        splice_.Remove(kConfig, kLabels, key);
        if (reference_->has_config()) config().mutable_labels()->erase(key);
        return;
      case 8:
        return MapPair(kResources, kUnified, key, value, *resources().mutable_unified());
      case 9:
        Touch({2, 15, 1, 9});
        splice_.Remove(kResources, kUnified, key);
        if (has_resources()) resources().mutable_unified()->erase(key);
        return;
      case 10:
        Touch({2, 4});
        splice_.Clear(kConfig, 4);
        if (reference_->has_config()) config().clear_args();
        return;
      case 11:
        Touch({2, 4});
        splice_.Append(kConfig, 4, value);
        config().add_args(value);
        return;
      case 12:
        Touch({2, 15, 1, 3});
        splice_.SetNumber(kResources, 3, with);
        resources().set_cpu_shares(with);
        return;
      case 13:
        Touch({2, 15, 1, 6});
        splice_.SetBytes(kResources, 6, value);
        resources().set_cpuset_cpus(value);
        return;
      default:
        Touch({2, 15});
        splice_.Clear(kConfig, 15);
        if (reference_->has_config()) config().clear_linux();
        return;
    }
  }

 private:
  static std::string_view KeyOfPair(const ::runtime::v1::KeyValue& pair) { return pair.key(); }
  static constexpr auto KeyOfPath = [](const auto& entry) -> std::string_view {
    return entry.container_path();
  };

  ContainerConfig& config() { return *reference_->mutable_config(); }
  LinuxContainerResources& resources() { return *config().mutable_linux()->mutable_resources(); }
  bool has_resources() const { return reference_->config().linux().has_resources(); }
  void Touch(std::vector<uint32_t> path) { touched_.insert(std::move(path)); }

  void Pair(const FieldPath& path, KeyedField field, const std::string& key,
            const std::string& value,
            google::protobuf::RepeatedPtrField<::runtime::v1::KeyValue>& entries) {
    Touch({2, field.field});
    splice_.PutPair(path, field.field, key, value);
    ::runtime::v1::KeyValue entry;
    entry.set_key(key);
    entry.set_value(value);
    Put(entry, key, entries, KeyOfPair);
  }

  template <typename Map>
  void MapPair(const FieldPath& path, KeyedField field, const std::string& key,
               const std::string& value, Map& map) {
    Touch(path.depth == 1 ? std::vector<uint32_t>{2, field.field}
                          : std::vector<uint32_t>{2, 15, 1, field.field});
    splice_.PutPair(path, field.field, key, value);
    map[key] = value;
  }

  void PutMount(const std::string& key, const std::string& value) {
    Touch({2, kMounts.field});
    ::runtime::v1::Mount mount;
    mount.set_container_path(key);
    mount.set_host_path(value);
    splice_.Put(kConfig, kMounts, key, mount.SerializeAsString());
    Put(mount, key, *config().mutable_mounts(), KeyOfPath);
  }

  void PutDevice(const std::string& key, const std::string& value) {
    Touch({2, kDevices.field});
    ::runtime::v1::Device device;
    device.set_container_path(key);
    device.set_permissions(value);
    splice_.Put(kConfig, kDevices, key, device.SerializeAsString());
    Put(device, key, *config().mutable_devices(), KeyOfPath);
  }

  template <typename Entry, typename KeyOf>
  static void Put(const Entry& entry, std::string_view key,
                  google::protobuf::RepeatedPtrField<Entry>& entries, const KeyOf& key_of) {
    const auto same = [&](const Entry& other) { return key_of(other) == key; };
    const auto first = std::find_if(entries.begin(), entries.end(), same);
    if (first == entries.end()) {
      *entries.Add() = entry;
      return;
    }
    *first = entry;
    entries.erase(std::remove_if(first + 1, entries.end(), same), entries.end());
  }

  template <typename Entry, typename KeyOf>
  void Remove(KeyedField field, std::string_view key,
              google::protobuf::RepeatedPtrField<Entry>* (ContainerConfig::*mutable_entries)(),
              const KeyOf& key_of) {
    Touch({2, field.field});
    splice_.Remove(kConfig, field, key);
    if (!reference_->has_config()) return;
    google::protobuf::RepeatedPtrField<Entry>& entries = *(config().*mutable_entries)();
    entries.erase(std::remove_if(entries.begin(), entries.end(),
                                 [&](const Entry& entry) { return key_of(entry) == key; }),
                  entries.end());
  }

  CreateContainerRequest* reference_;
  MessageSplice splice_;
  std::set<std::vector<uint32_t>> touched_;
};

// The bytes of all fields, in their order, that no edit was for.
void CollectUntouched(std::string_view message, const Edits& edits, std::vector<uint32_t>& path,
                      std::vector<std::string>& fields) {
  const char* start = message.data();
  for (WireReader reader(message); reader.Next();) {
    const std::string_view bytes(start, static_cast<size_t>(reader.rest().data() - start));
    start = reader.rest().data();
    path.push_back(reader.field());
    const bool enter = reader.is_bytes() &&
                       (path == std::vector<uint32_t>{2} || path == std::vector<uint32_t>{2, 15} ||
                        path == std::vector<uint32_t>{2, 15, 1});
    if (edits.Touched(path)) {
      // Replaced, removed or added.
    } else if (enter) {
      CollectUntouched(reader.bytes(), edits, path, fields);
    } else {
      fields.emplace_back(bytes);
    }
    path.pop_back();
  }
}

std::vector<std::string> Untouched(std::string_view message, const Edits& edits) {
  std::vector<std::string> fields;
  std::vector<uint32_t> path;
  CollectUntouched(message, edits, path, fields);
  return fields;
}

// Edits that a later one took back leave empty messages to the setters, and to the splice none.
void ClearEmpty(CreateContainerRequest& request) {
  ContainerConfig& config = *request.mutable_config();
  if (config.linux().resources().ByteSizeLong() == 0) config.mutable_linux()->clear_resources();
  if (config.linux().ByteSizeLong() == 0) config.clear_linux();
}

// False: the message is malformed protobuf for the splice.
bool Check(const Edits& edits, const CreateContainerRequest* expected, std::string_view message) {
  const auto spliced = edits.splice().Apply(message);
  if (!spliced.ok()) return false;
  const std::string result = spliced->ToString();
  if (result.size() != spliced->size()) __builtin_trap();
  if (spliced->suffix() && result != std::string(message) + std::string(*spliced->suffix())) {
    __builtin_trap();
  }
  if (Untouched(message, edits) != Untouched(result, edits)) __builtin_trap();
  if (expected == nullptr) return true;
  CreateContainerRequest parsed;
  if (!parsed.ParseFromString(result)) __builtin_trap();
  CreateContainerRequest wanted = *expected;
  // A cleared field of another wire type goes with the splice, and stays an unknown field for the
  // setters. Untouched has compared all others.
  parsed.DiscardUnknownFields();
  wanted.DiscardUnknownFields();
  ClearEmpty(parsed);
  ClearEmpty(wanted);
  google::protobuf::util::MessageDifferencer differencer;
  // An entry that is removed and put again may stand at its old place or at the end.
  for (const char* name : {"envs", "mounts", "devices"})
    differencer.TreatAsSet(ContainerConfig::descriptor()->FindFieldByName(name));
  if (!differencer.Compare(parsed, wanted)) __builtin_trap();
  return true;
}

}  // namespace

// Edits have the same result as a parser and setters, and leave all other bytes unchanged.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // libprotobuf would log every text that is not UTF-8.
  [[maybe_unused]] static auto* const protobuf_log = google::protobuf::SetLogHandler(nullptr);
  if (size == 0) return 0;
  const size_t count = std::min<size_t>(data[0] % 16, (size - 1) / 2);
  const uint8_t* const program = data + 1;
  const std::string_view message(reinterpret_cast<const char*>(program + 2 * count),
                                 size - 1 - 2 * count);
  CreateContainerRequest reference;
  const bool readable = reference.ParseFromString({message.data(), message.size()});
  const std::string canonical = reference.SerializeAsString();
  Edits edits(&reference);
  for (size_t i = 0; i < count; ++i)
    edits.Add(program[2 * i], program[2 * i + 1]);
  (void)reference.mutable_config();
  (void)Check(edits, readable ? &reference : nullptr, message);
  if (readable && !Check(edits, &reference, canonical)) __builtin_trap();
  return 0;
}
