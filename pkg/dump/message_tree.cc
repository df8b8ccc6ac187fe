// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/message_tree.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/base/utf8.h"

namespace resmgr::dump {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using nlohmann::json;

// How many bytes of a value are shown, enough to recognize it.
constexpr size_t kShownBytes = 48;
constexpr int kShownUnknownFields = 32;

constexpr const char* kUnknownFields = "unknown_fields";
// Shown in place of a secret.
constexpr std::string_view kRedacted = "<redacted>";

std::string Base64(const std::string& bytes) {
  return absl::Base64Escape(bytes);
}

// Whether the field is the value of an environment variable, which has the type bytes but nearly
// always holds text.
bool IsMostlyText(const FieldDescriptor& field) {
  return field.containing_type()->name() == "KeyValue";
}

bool IsUtf8(const std::string& bytes) {
  return Utf8Repaired(bytes) == bytes;
}

// "12 bytes"; if secrets are shown, the first of them follow.
std::string DescribeBytes(const std::string& bytes, bool show_secrets) {
  if (!show_secrets || bytes.empty()) return fmt::format("{} bytes", bytes.size());
  return fmt::format("{} bytes {}{}", bytes.size(), Base64(bytes.substr(0, kShownBytes)),
                     bytes.size() > kShownBytes ? "..." : "");
}

std::string DescribeUnknown(const UnknownField& field, bool show_secrets) {
  switch (field.type()) {
    case UnknownField::TYPE_VARINT:
      return fmt::format("{} varint {}", field.number(), field.varint());
    case UnknownField::TYPE_FIXED32:
      return fmt::format("{} fixed32 {}", field.number(), field.fixed32());
    case UnknownField::TYPE_FIXED64:
      return fmt::format("{} fixed64 {}", field.number(), field.fixed64());
    case UnknownField::TYPE_LENGTH_DELIMITED:
      return fmt::format("{} {}", field.number(),
                         DescribeBytes(field.length_delimited(), show_secrets));
    case UnknownField::TYPE_GROUP:
      return fmt::format("{} group of {} fields", field.number(), field.group().field_count());
  }
  return fmt::format("{}", field.number());
}

json DescribeUnknown(const UnknownFieldSet& fields, bool show_secrets) {
  json list = json::array();
  for (int i = 0; i < fields.field_count() && i < kShownUnknownFields; ++i)
    list.push_back(DescribeUnknown(fields.field(i), show_secrets));
  if (fields.field_count() > kShownUnknownFields)
    list.push_back(fmt::format("and {} more", fields.field_count() - kShownUnknownFields));
  return list;
}

// One value of a field; index is -1 for a field that is not repeated.
class ValueReader {
 public:
  ValueReader(const ProtoMessage& message, const FieldDescriptor& field, bool show_secrets)
      : message_(message),
        reflection_(*message.GetReflection()),
        field_(field),
        show_secrets_(show_secrets) {}

  json Read(int index) const {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return Number(&Reflection::GetInt32, &Reflection::GetRepeatedInt32, index);
      case FieldDescriptor::CPPTYPE_INT64:
        return Number(&Reflection::GetInt64, &Reflection::GetRepeatedInt64, index);
      case FieldDescriptor::CPPTYPE_UINT32:
        return Number(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32, index);
      case FieldDescriptor::CPPTYPE_UINT64:
        return Number(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64, index);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Number(&Reflection::GetDouble, &Reflection::GetRepeatedDouble, index);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return Number(&Reflection::GetFloat, &Reflection::GetRepeatedFloat, index);
      case FieldDescriptor::CPPTYPE_BOOL:
        return Number(&Reflection::GetBool, &Reflection::GetRepeatedBool, index);
      case FieldDescriptor::CPPTYPE_ENUM:
        return Number(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue, index);
      case FieldDescriptor::CPPTYPE_STRING:
        return Text(index);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return ToTree(index < 0 ? reflection_.GetMessage(message_, &field_)
                                : reflection_.GetRepeatedMessage(message_, &field_, index),
                      show_secrets_);
    }
    return nullptr;
  }

 private:
  template <typename T>
  json Number(T (Reflection::*single)(const ProtoMessage&, const FieldDescriptor*) const,
              T (Reflection::*repeated)(const ProtoMessage&, const FieldDescriptor*, int) const,
              int index) const {
    return index < 0 ? (reflection_.*single)(message_, &field_)
                     : (reflection_.*repeated)(message_, &field_, index);
  }

  json Text(int index) const {
    std::string scratch;
    const std::string& text =
        index < 0 ? reflection_.GetStringReference(message_, &field_, &scratch)
                  : reflection_.GetRepeatedStringReference(message_, &field_, index, &scratch);
    if (field_.type() != FieldDescriptor::TYPE_BYTES) return text;
    return IsMostlyText(field_) && IsUtf8(text) ? text : Base64(text);
  }

  const ProtoMessage& message_;
  const Reflection& reflection_;
  const FieldDescriptor& field_;
  const bool show_secrets_;
};

// Whether the field's values are secrets.
bool IsSecret(const FieldDescriptor& field) {
  const std::string_view message = field.containing_type()->name();
  const std::string_view name = field.name();
  // All fields of AuthConfig are secret: the name is half of a credential, and the address shows
  // where it is valid.
  if (message == "AuthConfig") return true;
  if (message == "KeyValue") return name == "value";
  // NRI has "NAME=VALUE" texts for containers and for hooks.
  if (name == "env") return field.type() == FieldDescriptor::TYPE_STRING;
  return name == "info" && field.is_map();
}

// Every map of the CRI has strings as keys and values.
json MapToTree(const ProtoMessage& message, const FieldDescriptor& field, bool show_secrets) {
  const Reflection& reflection = *message.GetReflection();
  const bool secret = IsSecret(field);
  json object = json::object();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const ProtoMessage& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Reflection& pair = *entry.GetReflection();
    std::string key = pair.GetString(entry, field.message_type()->map_key());
    const bool hide = !show_secrets && (secret || IsSecretAnnotation(key));
    object[std::move(key)] =
        hide ? std::string(kRedacted) : pair.GetString(entry, field.message_type()->map_value());
  }
  return object;
}

json FieldToTree(const ProtoMessage& message, const FieldDescriptor& field, bool show_secrets) {
  if (field.is_map()) return MapToTree(message, field, show_secrets);
  if (!show_secrets && IsSecret(field)) return kRedacted;
  const ValueReader reader(message, field, show_secrets);
  if (!field.is_repeated()) return reader.Read(-1);
  json list = json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i)
    list.push_back(reader.Read(i));
  return list;
}

// The fields of a message whose type is unknown, by number.
json UnknownToTree(const Payload& payload, bool show_secrets) {
  json tree = json::object();
  UnknownFieldSet fields;
  if (!fields.ParseFromString(payload.bytes)) {
    tree["undecodable"] = DescribeBytes(payload.bytes, show_secrets);
  } else if (!fields.empty()) {
    tree[kUnknownFields] = DescribeUnknown(fields, show_secrets);
  }
  return tree;
}

// More levels than any body of the Docker API has. Each level takes stack.
constexpr int kMostLevels = 100;
constexpr std::string_view kAnnotation = "annotation.";
// Names of secret members in lower case: credentials of registries, those of a swarm, and the
// contents of its secrets and configurations.
constexpr std::array<std::string_view, 13> kSecrets = {
    "auth",       "data",     "email",          "identitytoken", "jointoken",
    "jointokens", "password", "registrytoken",  "serveraddress", "signingcakey",
    "unlockkey",  "username", "x-registry-auth"};
// Members with options for drivers and builds, which may include passwords of network file systems.
constexpr std::array<std::string_view, 4> kOptions = {"buildargs", "driveropts", "options", "opts"};
// The options of a log driver, which may include tokens for a logging service.
constexpr std::string_view kLogConfig = "logconfig";
constexpr std::string_view kLogOptions = "config";

// Replaces values by "NAME=<redacted>".
void HideValues(nlohmann::json& list) {
  if (!list.is_array()) {
    list = kRedacted;
    return;
  }
  for (nlohmann::json& entry : list) {
    const std::string text = entry.is_string() ? entry.get<std::string>() : "";
    entry = text.substr(0, text.find('=')).append("=").append(kRedacted);
  }
}

// Hides the values of options; their names are shown.
void HideOptions(nlohmann::json& options) {
  if (options.is_null()) return;
  if (!options.is_object()) {
    options = kRedacted;
    return;
  }
  for (nlohmann::json& option : options)
    option = kRedacted;
}

bool IsSecretLabel(std::string_view name) {
  if (name.starts_with(kAnnotation)) name.remove_prefix(kAnnotation.size());
  return IsSecretAnnotation(name);
}

// Hides the secrets within `value`, which is the value of a member; `parent` is the folded name of
// that member.
void Hide(nlohmann::json& value, std::string_view parent, int level) {
  if (!value.is_structured()) return;
  if (level == kMostLevels) {
    value = kRedacted;
    return;
  }
  if (value.is_array()) {
    for (nlohmann::json& entry : value)
      Hide(entry, parent, level + 1);
    return;
  }
  for (auto& [name, member] : value.items()) {
    const std::string folded = FoldedName(name);
    if (folded == "env") {
      HideValues(member);
    } else if (std::ranges::find(kSecrets, folded) != kSecrets.end() || IsSecretLabel(name)) {
      member = kRedacted;
    } else if (std::ranges::find(kOptions, folded) != kOptions.end() ||
               (parent == kLogConfig && folded == kLogOptions)) {
      HideOptions(member);
    } else {
      Hide(member, folded, level + 1);
    }
  }
}

constexpr std::string_view kAround = "config.";
// Characters of a shown value. A longer one is cut: a list may be the whole environment.
constexpr size_t kLongestValue = 256;

json DefaultOf(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return json::object();
    case json::value_t::array:
      return json::array();
    case json::value_t::string:
      return "";
    case json::value_t::boolean:
      return false;
    default:
      return 0;
  }
}

std::string Shown(const json& value) {
  return Printable(PrintableJson(JsonText(value)), kLongestValue);
}

void Compare(const std::string& name, const json& before, const json& after,
             std::vector<std::string>& lines) {
  if (before == after) return;
  if (!before.is_object() || !after.is_object()) {
    const std::string_view shown =
        name.starts_with(kAround) ? std::string_view(name).substr(kAround.size()) : name;
    lines.push_back(
        fmt::format("{} {} -> {}", Printable(shown, name.size()), Shown(before), Shown(after)));
    return;
  }
  std::set<std::string> keys;
  for (const json* const object : {&before, &after}) {
    for (const auto& [key, value] : object->items())
      keys.insert(key);
  }
  for (const std::string& key : keys) {
    const json& present = after.contains(key) ? after.at(key) : before.at(key);
    Compare(name.empty() ? key : fmt::format("{}.{}", name, key),
            before.value(key, DefaultOf(present)), after.value(key, DefaultOf(present)), lines);
  }
}

}  // namespace

json ToTree(const ProtoMessage& message, bool show_secrets) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  json tree = json::object();
  for (const FieldDescriptor* field : fields)
    tree[field->name()] = FieldToTree(message, *field, show_secrets);
  const UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) tree[kUnknownFields] = DescribeUnknown(unknown, show_secrets);
  return tree;
}

json ToTree(const Payload& payload, const ProtoMessage* type, bool show_secrets) {
  if (payload.compressed) {
    return {{"compressed", fmt::format("{} bytes", payload.total_size)}};
  }
  if (payload.encoding == "json") return JsonTree(payload, show_secrets);
  json tree;
  if (type == nullptr) {
    tree = UnknownToTree(payload, show_secrets);
  } else {
    const std::unique_ptr<ProtoMessage> message(type->New());
    if (message->ParsePartialFromString(payload.bytes) || payload.truncated()) {
      tree = ToTree(*message, show_secrets);
    } else {
      tree = {{"undecodable", DescribeBytes(payload.bytes, show_secrets)}};
    }
  }
  if (payload.truncated()) {
    tree["truncated"] =
        fmt::format("the first {} of {} bytes", payload.bytes.size(), payload.total_size);
  }
  return tree;
}

nlohmann::json JsonTree(const Payload& payload, bool show_secrets) {
  if (payload.bytes.empty()) return nlohmann::json::object();
  std::optional<nlohmann::json> tree = ParseJson(payload.bytes);
  if (!tree) return {{"undecodable", fmt::format("{} bytes", payload.bytes.size())}};
  if (!show_secrets) Hide(*tree, "", 0);
  if (tree->is_object()) return *std::move(tree);
  return {{"value", *std::move(tree)}};
}

bool IsSecretAnnotation(std::string_view key) {
  return key == "kubectl.kubernetes.io/last-applied-configuration";
}

std::vector<std::string> Differences(const json& before, const json& after) {
  std::vector<std::string> lines;
  Compare("", before, after, lines);
  return lines;
}

}  // namespace resmgr::dump
