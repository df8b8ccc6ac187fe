// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/message_splice.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "pkg/base/wire.h"
#include "pkg/cri/edit_fields.h"

namespace resmgr {

namespace {

constexpr uint32_t kPairKey = 1;
constexpr uint32_t kPairValue = 2;
constexpr size_t kLongestVarint = 10;

void AddVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(static_cast<uint8_t>(value) | 0x80);
  out += static_cast<char>(value);
}

// The bytes of a field's tag.
std::string_view TagOf(std::string_view field) {
  const auto end =
      std::ranges::find_if(field, [](char c) { return (static_cast<uint8_t>(c) & 0x80) == 0; });
  return field.substr(0, static_cast<size_t>(end - field.begin()) + 1);
}

}  // namespace

// One run of MessageSplice::Apply.
class SpliceWriter {
 public:
  explicit SpliceWriter(std::string_view message) : message_(message) {}

  StatusOr<SplicedMessage> Write(const MessageSplice::Node& root) {
    RESMGR_RETURN_IF_ERROR(WriteFields(root, message_));
    const size_t begin = own_.size();
    {
      FieldWriter fields(own_);
      WriteAdditions(root, fields);
    }
    pieces_.push_back({.own = true, .begin = begin, .size = own_.size() - begin});
    return Finish();
  }

 private:
  // A part of the original message or of own_.
  struct Piece {
    bool own = false;
    size_t begin = 0;
    size_t size = 0;
  };

  // Whether entries of the message may have edited keys: this search avoids reading dozens of
  // entries, most of which have other keys.
  static bool MayHaveKeys(const MessageSplice::Node& node, std::string_view message) {
    constexpr size_t kMostSearches = 4;
    size_t searches = 0;
    for (const auto& [number, field] : node.fields) {
      searches += field.entry_by_key.size();
      if (searches > kMostSearches) return true;
      for (const auto& [key, index] : field.entry_by_key) {
        if (::memmem(message.data(), message.size(), key.data(), key.size()) != nullptr) {
          return true;
        }
      }
    }
    return false;
  }

  Status WriteFields(const MessageSplice::Node& node, std::string_view message) {
    const bool has_keys = MayHaveKeys(node, message);
    const char* start = message.data();
    WireReader reader(message);
    // The last result is kept, since entries of a list are usually adjacent.
    uint32_t looked_up = 0;
    auto it = node.fields.end();
    while (reader.Next()) {
      const std::string_view bytes(start, static_cast<size_t>(reader.rest().data() - start));
      start = reader.rest().data();
      if (reader.field() != looked_up) {
        looked_up = reader.field();
        it = node.fields.find(looked_up);
      }
      if (it == node.fields.end()) {
        Keep(bytes);
        continue;
      }
      const MessageSplice::Field& field = it->second;
      if (field.cleared) continue;
      if (reader.is_bytes() && field.message != nullptr && field.message->removes) {
        RESMGR_RETURN_IF_ERROR(WriteSubmessage(*field.message, bytes, reader.bytes()));
      } else if (reader.is_bytes() && has_keys && !field.entries.empty()) {
        RESMGR_RETURN_IF_ERROR(WriteEntry(field, bytes, reader.bytes()));
      } else {
        Keep(bytes);
      }
    }
    return reader.failed() ? InvalidArgument("the message is malformed protobuf") : OkStatus();
  }

  // `field` has all bytes of the field, `message` only its value, without tag and length.
  Status WriteSubmessage(const MessageSplice::Node& node, std::string_view field,
                         std::string_view message) {
    const size_t count = pieces_.size();
    const size_t last_size = pieces_.empty() ? 0 : pieces_.back().size;
    Keep(TagOf(field));
    const size_t length = pieces_.size();
    pieces_.emplace_back();
    RESMGR_RETURN_IF_ERROR(WriteFields(node, message));
    size_t size = 0;
    bool own = false;
    for (size_t i = length + 1; i < pieces_.size(); ++i) {
      size += pieces_[i].size;
      own = own || pieces_[i].own;
    }
    if (!own && size == message.size()) {
      // The submessage's content did not change, so it stays as it was.
      pieces_.resize(count);
      if (count > 0) pieces_.back().size = last_size;
      Keep(field);
    } else if (size == message.size()) {
      const size_t tag = TagOf(field).size();
      pieces_[length] = Original(field.substr(tag, field.size() - tag - message.size()));
    } else {
      pieces_[length] = {.own = true, .begin = own_.size(), .size = 0};
      AddVarint(size, own_);
      pieces_[length].size = own_.size() - pieces_[length].begin;
    }
    return OkStatus();
  }

  Status WriteEntry(const MessageSplice::Field& field, std::string_view bytes,
                    std::string_view entry) {
    std::string_view key;
    if (!ReadTextField(entry, field.key_field, key)) {
      return InvalidArgument("an entry of a repeated field is malformed protobuf");
    }
    const auto it = field.entry_by_key.find(key);
    if (it == field.entry_by_key.end()) {
      Keep(bytes);
      return OkStatus();
    }
    const MessageSplice::Entry& edit = field.entries[it->second];
    if (!edit || !placed_.insert(&edit).second) return OkStatus();
    if (*edit == entry) {
      Keep(bytes);
      return OkStatus();
    }
    Keep(TagOf(bytes));
    const size_t begin = own_.size();
    own_.reserve(begin + kLongestVarint + edit->size());
    AddVarint(edit->size(), own_);
    own_ += *edit;
    pieces_.push_back({.own = true, .begin = begin, .size = own_.size() - begin});
    return OkStatus();
  }

  bool Adds(const MessageSplice::Entry& entry) const {
    return entry.has_value() && !placed_.contains(&entry);
  }
  bool Adds(const MessageSplice::Node& node) const {
    return std::ranges::any_of(node.fields, [this](const auto& each) {
      const MessageSplice::Field& field = each.second;
      return field.number.has_value() || !field.values.empty() ||
             std::ranges::any_of(
                 field.entries,
                 [this](const MessageSplice::Entry& entry) { return Adds(entry); }) ||
             (field.message != nullptr && Adds(*field.message));
    });
  }

  void WriteAdditions(const MessageSplice::Node& node, FieldWriter& fields) const {
    for (const auto& [number, field] : node.fields) {
      if (field.number) fields.Number(number, *field.number);
      for (const std::string& value : field.values)
        fields.Bytes(number, value);
      for (const MessageSplice::Entry& entry : field.entries) {
        if (Adds(entry)) fields.Bytes(number, *entry);
      }
      if (field.message == nullptr || !Adds(*field.message)) continue;
      const size_t begin = fields.Begin(number);
      WriteAdditions(*field.message, fields);
      fields.End(begin);
    }
  }

  Piece Original(std::string_view bytes) const {
    return {.begin = static_cast<size_t>(bytes.data() - message_.data()), .size = bytes.size()};
  }

  // Appends bytes of the original. They must come after all bytes that were kept or dropped so far.
  void Keep(std::string_view bytes) {
    const Piece piece = Original(bytes);
    if (!pieces_.empty()) {
      Piece& last = pieces_.back();
      if (!last.own && last.size > 0 && last.begin + last.size == piece.begin) {
        last.size += piece.size;
        return;
      }
    }
    pieces_.push_back(piece);
  }

  SplicedMessage Finish() {
    SplicedMessage result;
    result.own_ = std::make_unique<const std::string>(std::move(own_));
    for (const Piece& piece : pieces_) {
      if (piece.size == 0) continue;
      const std::string_view source = piece.own ? std::string_view(*result.own_) : message_;
      result.pieces_.push_back(source.substr(piece.begin, piece.size));
      result.size_ += piece.size;
    }
    std::string_view kept;
    std::string_view rest;
    for (const std::string_view piece : result.pieces_) {
      (piece.data() == message_.data() ? kept : rest) = piece;
    }
    if (kept.size() == message_.size() && result.size_ == kept.size() + rest.size()) {
      result.suffix_ = rest;
    }
    return result;
  }

  const std::string_view message_;
  std::string own_;
  std::vector<Piece> pieces_;
  std::set<const MessageSplice::Entry*> placed_;  // entries that replaced another
};

std::string SplicedMessage::ToString() const {
  std::string text;
  text.reserve(size_);
  for (const std::string_view piece : pieces_)
    text += piece;
  return text;
}

MessageSplice::Node& MessageSplice::At(const FieldPath& path, bool removes) {
  Node* node = &root_;
  node->removes = node->removes || removes;
  for (size_t i = 0; i < path.depth; ++i) {
    Field& field = node->fields[path.fields.at(i)];
    if (field.message == nullptr) field.message = std::make_unique<Node>();
    node = field.message.get();
    node->removes = node->removes || removes;
  }
  return *node;
}

void MessageSplice::SetNumber(const FieldPath& path, uint32_t field, uint64_t value) {
  At(path, false).fields[field].number = value;
}

void MessageSplice::SetBytes(const FieldPath& path, uint32_t field, std::string_view value) {
  At(path, false).fields[field].values.assign(1, std::string(value));
}

void MessageSplice::Clear(const FieldPath& path, uint32_t field) {
  Field& cleared = At(path, true).fields[field];
  cleared = Field();
  cleared.cleared = true;
}

void MessageSplice::Append(const FieldPath& path, uint32_t field, std::string_view value) {
  At(path, false).fields[field].values.emplace_back(value);
}

void MessageSplice::Put(const FieldPath& path, KeyedField field, std::string_view key,
                        std::string_view entry) {
  SetEntry(path, field, key, std::string(entry));
}

void MessageSplice::Remove(const FieldPath& path, KeyedField field, std::string_view key) {
  SetEntry(path, field, key, std::nullopt);
}

void MessageSplice::PutPair(const FieldPath& path, uint32_t field, std::string_view key,
                            std::string_view value) {
  std::string entry;
  {
    FieldWriter fields(entry);
    fields.Bytes(kPairKey, key);
    fields.Bytes(kPairValue, value);
  }
  SetEntry(path, {.field = field, .key = kPairKey}, key, std::move(entry));
}

void MessageSplice::SetEntry(const FieldPath& path, KeyedField field, std::string_view key,
                             Entry value) {
  Field& edits = At(path, true).fields[field.field];
  edits.key_field = field.key;
  const auto [it, added] = edits.entry_by_key.try_emplace(std::string(key), edits.entries.size());
  if (added) edits.entries.emplace_back();
  edits.entries[it->second] = std::move(value);
}

StatusOr<SplicedMessage> MessageSplice::Apply(std::string_view message) const {
  return SpliceWriter(message).Write(root_);
}

}  // namespace resmgr
