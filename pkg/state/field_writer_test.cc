// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/field_writer.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "pkg/base/wire.h"

namespace resmgr {
namespace {

TEST(FieldWriterTest, WritesWhatTheOtherWayOfWritingWrites) {
  std::string expected = "before";
  std::string text = expected;
  {
    FieldWriter fields(text);
    for (uint32_t field = 1; field < 16; ++field) {
      for (int shift = 0; shift < 64; ++shift) {
        const uint64_t number = (uint64_t{1} << shift) - (field & 1);
        fields.Number(field, number);
        AppendNumberField(field, number, expected);
      }
      fields.Number(field, std::numeric_limits<uint64_t>::max());
      AppendNumberField(field, std::numeric_limits<uint64_t>::max(), expected);
      for (const size_t size : std::initializer_list<size_t>{0, 1, 127, 128, 300, 20'000}) {
        fields.Bytes(field, std::string(size, 'x'));
        AppendBytesField(field, std::string(size, 'x'), expected);
      }
    }
  }
  EXPECT_EQ(text, expected);
}

TEST(FieldWriterTest, WritesMessagesOfAnyLength) {
  for (const size_t size : std::initializer_list<size_t>{0, 1, 120, 125, 126, 127, 128, 253, 254,
                                                         255, 16'380, 16'384, 70'000}) {
    std::string expected;
    const size_t outer = BeginMessageField(1, expected);
    const size_t inner = BeginMessageField(2, expected);
    AppendBytesField(3, std::string(size, 'x'), expected);
    EndMessageField(inner, expected);
    AppendNumberField(4, 5, expected);
    EndMessageField(outer, expected);

    std::string text;
    {
      FieldWriter fields(text);
      const size_t message = fields.Begin(1);
      const size_t within = fields.Begin(2);
      fields.Bytes(3, std::string(size, 'x'));
      fields.End(within);
      fields.Number(4, 5);
      fields.End(message);
    }
    EXPECT_EQ(text, expected) << size;
  }
}

}  // namespace
}  // namespace resmgr
