// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// The submessage for an edit: field numbers from the outermost message inwards, each of a field
// that is a message and not repeated. {2, 15, 1} is config.linux.resources of a
// CreateContainerRequest; {} is the outermost message itself.
struct FieldPath {
  static constexpr size_t kDeepest = 8;

  constexpr FieldPath(std::initializer_list<uint32_t> path) {
    for (const uint32_t field : path)
      fields.at(depth++) = field;
  }

  std::array<uint32_t, kDeepest> fields{};
  size_t depth = 0;
};

// A repeated field of messages with a string as key: ContainerConfig.mounts by container_path is
// {.field = 7, .key = 1}. A map is such a field, with its keys in field 1.
struct KeyedField {
  uint32_t field = 0;
  uint32_t key = 0;
};

// An edited message as a sequence of parts of the original and own bytes. Must not outlive the
// original's bytes.
class SplicedMessage {
 public:
  size_t size() const { return size_; }
  // The message is the concatenation of the pieces.
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  std::string ToString() const;
  // The appended bytes if the message begins with the unchanged original; else nullopt.
  std::optional<std::string_view> suffix() const { return suffix_; }

 private:
  friend class SpliceWriter;

  std::unique_ptr<const std::string> own_;
  std::vector<std::string_view> pieces_;
  std::optional<std::string_view> suffix_;
  size_t size_ = 0;
};

// Collects edits of one protobuf message and carries them out in one pass over its bytes. All other
// bytes stay unchanged: unknown fields, groups, the order of fields, overlong encodings of numbers
// and lengths. The message is not copied.
//
// Values that are set or added are appended to the message, where a parser merges them
// into the former ones (protobuf encoding, "Last One Wins" and "Merge"). Values that are replaced
// or removed are changed in place, in each occurrence of a repeated submessage.
//
// Edits of different fields and entries do not depend on each other's order; of several edits of
// the same one the last counts.
class MessageSplice {
 public:
  // Sets a singular number or string. Signed numbers are given as their two's complement, as
  // protobuf encodes int32 and int64.
  void SetNumber(const FieldPath& path, uint32_t field, uint64_t value);
  void SetBytes(const FieldPath& path, uint32_t field, std::string_view value);
  // Removes all occurrences of a field, of whatever type.
  void Clear(const FieldPath& path, uint32_t field);
  // Adds a value at the end of a repeated field of strings or messages. Not for fields with Put or
  // Remove.
  void Append(const FieldPath& path, uint32_t field, std::string_view value);
  // Replaces the entry with this key in place, or adds it at the end. `entry` is the whole encoded
  // message, with its key. If several entries have the key, the first is replaced and the others
  // are removed.
  void Put(const FieldPath& path, KeyedField field, std::string_view key, std::string_view entry);
  // Removes all entries with this key.
  void Remove(const FieldPath& path, KeyedField field, std::string_view key);
  // Puts an entry {1: key, 2: value} of a map, or of the CRI's repeated KeyValue (envs). Their
  // KeyedField is {field, 1}.
  void PutPair(const FieldPath& path, uint32_t field, std::string_view key, std::string_view value);

  // kInvalidArgument: the message, or a submessage or an entry that may have to be changed, is
  // malformed protobuf.
  StatusOr<SplicedMessage> Apply(std::string_view message) const;

 private:
  friend class SpliceWriter;

  // nullopt: removed.
  using Entry = std::optional<std::string>;
  struct Node;
  // The edits of one field of a message.
  struct Field {
    bool cleared = false;
    uint32_t key_field = 0;
    std::optional<uint64_t> number;
    std::vector<std::string> values;  // values to be appended
    std::vector<Entry> entries;       // in the order of their first edit
    std::map<std::string, size_t, std::less<>> entry_by_key;
    std::unique_ptr<Node> message;  // the edits inside of it
  };
  // The edits of one message.
  struct Node {
    std::map<uint32_t, Field> fields;
    bool removes = false;  // it removes or replaces something, here or further inside
  };

  Node& At(const FieldPath& path, bool removes);
  void SetEntry(const FieldPath& path, KeyedField field, std::string_view key, Entry value);

  Node root_;
};

}  // namespace resmgr
