#include "traces/values/unpack.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/core.h>
#include <zlib.h>

#ifdef ROLLCALL_HAS_ZSTD
#include <zstd.h>
#endif

#include "traces/values/value.h"

namespace rollcall::traces {

namespace {

constexpr std::size_t first_bytes = std::size_t{1} << 20;

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }
bool is_zstd(std::string_view bytes) { return bytes.starts_with("\x28\xb5\x2f\xfd"); }

struct Packing {
  std::size_t offset;
  std::string_view magic;
  std::string_view name;
};

constexpr std::array<Packing, 4> other_packings = {{
    {257, "ustar", "a tar archive; unpack it first (tar -xf)"},
    {0, "PK\x03\x04", "a zip archive; unpack it first (unzip)"},
    {0, std::string_view("\xfd\x37zXZ\0", 6), "compressed with xz; decompress it first (xz -d)"},
    {0, "BZh", "compressed with bzip2; decompress it first (bzip2 -d)"},
}};

// An output buffer that doubles whenever it is full.
class Output {
 public:
  Output(std::string& into, std::size_t bytes_max) : into_(into), bytes_max_(bytes_max) {
    into_.resize(std::min(bytes_max, std::max(into_.capacity(), first_bytes)));
  }

  char* next() { return into_.data() + size_; }
  std::size_t room() const { return into_.size() - size_; }
  void add(std::size_t count) { size_ += count; }
  std::string_view bytes() const { return {into_.data(), size_}; }

  // Returns false if the buffer may not grow any further.
  bool grow() {
    if (into_.size() >= bytes_max_) {
      return false;
    }
    into_.resize(std::min(bytes_max_, into_.size() * 2));
    return true;
  }

 private:
  std::string& into_;
  std::size_t bytes_max_;
  std::size_t size_ = 0;
};

// What a decoder did in one step.
struct Step {
  std::size_t consumed = 0;
  std::size_t produced = 0;
  bool ends = false;  // at the end of a member or frame; another may follow
};

class Gzip {
 public:
  static constexpr const char* name = "gzip";

  Gzip() {
    constexpr int gzip_window = 15 + 16;  // the largest
    if (::inflateInit2(&stream_, gzip_window) != Z_OK) {
      throw BadFile(0, "cannot initialize zlib");
    }
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { ::inflateEnd(&stream_); }

  // Throws BadFile for damaged data.
  Step step(std::string_view in, char* out, std::size_t room, std::size_t offset) {
    const auto in_size = static_cast<uInt>(std::min<std::size_t>(in.size(), UINT32_MAX));
    const auto out_size = static_cast<uInt>(std::min<std::size_t>(room, UINT32_MAX));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // zlib does not write there
    stream_.avail_in = in_size;
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = out_size;
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    const Step step{in_size - stream_.avail_in, out_size - stream_.avail_out, code == Z_STREAM_END};
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      throw BadFile(offset + step.consumed, "the gzip data is damaged");
    }
    if (step.ends) {
      ::inflateReset(&stream_);
    }
    return step;
  }

  // Bytes after a member that are not another member are padding, as in gzip(1).
  static bool goes_on(std::string_view rest) { return is_gzip(rest); }

 private:
  z_stream stream_{};
};

#ifdef ROLLCALL_HAS_ZSTD
class Zstd {
 public:
  static constexpr const char* name = "zstd";

  Zstd() : stream_(::ZSTD_createDStream(), &::ZSTD_freeDStream) {
    if (stream_ == nullptr) {
      throw BadFile(0, "cannot initialize zstd");
    }
  }

  // Throws BadFile for damaged data, and for frames with larger windows than zstd's own default allows.
  Step step(std::string_view in, char* out, std::size_t room, std::size_t offset) {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, room, 0};
    const std::size_t left = ::ZSTD_decompressStream(stream_.get(), &to, &from);
    if (::ZSTD_isError(left) != 0) {
      throw BadFile(offset + from.pos,
                    fmt::format("the zstd data is damaged: {}", ::ZSTD_getErrorName(left)));
    }
    return {from.pos, to.pos, left == 0};
  }

  static bool goes_on(std::string_view rest) { return !rest.empty(); }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> stream_;
};
#endif

// Decodes until the input ends or the output may not grow. True if the input ended, at the end of a member.
template <typename Decoder>
bool decode(std::string_view packed, Output& output, std::size_t& offset) {
  Decoder decoder;
  for (;;) {
    if (output.room() == 0 && !output.grow()) {
      return false;
    }
    const Step step = decoder.step(packed.substr(offset), output.next(), output.room(), offset);
    offset += step.consumed;
    output.add(step.produced);
    if (step.ends && !Decoder::goes_on(packed.substr(offset))) {
      return true;
    }
    if (step.consumed == 0 && step.produced == 0 && !step.ends) {
      throw BadFile(offset, fmt::format("the {} data ends here: it is truncated", Decoder::name));
    }
  }
}

bool decode_any(std::string_view packed, Output& output, std::size_t& offset) {
  if (is_gzip(packed)) {
    return decode<Gzip>(packed, output, offset);
  }
#ifdef ROLLCALL_HAS_ZSTD
  return decode<Zstd>(packed, output, offset);
#else
  throw BadFile(
      0,
      "compressed with zstd, which this build of rollcall does not support; decompress it first (zstd -d)");
#endif
}

}  // namespace

bool reads_zstd() {
#ifdef ROLLCALL_HAS_ZSTD
  return true;
#else
  return false;
#endif
}

bool is_packed(std::string_view bytes) { return is_gzip(bytes) || is_zstd(bytes); }

std::string_view other_packing(std::string_view bytes) {
  const auto begins = [bytes](const Packing& packing) {
    return bytes.size() > packing.offset && bytes.substr(packing.offset).starts_with(packing.magic);
  };
  const auto packing = std::ranges::find_if(other_packings, begins);
  return packing == other_packings.end() ? std::string_view() : packing->name;
}

std::string_view unpack(std::string_view packed, std::string& into, std::size_t bytes_max) {
  Output output(into, bytes_max);
  std::size_t offset = 0;
  if (!decode_any(packed, output, offset)) {
    throw BadFile(offset, fmt::format("decompresses to more than {} MiB", bytes_max >> 20));
  }
  return output.bytes();
}

std::string beginning_of_packed(std::string_view packed, std::size_t size) {
  std::string into;
  Output output(into, size);
  std::size_t offset = 0;
  try {
    decode_any(packed, output, offset);
  } catch (const BadFile& cut) {
    // as far as it goes
  }
  into.resize(output.bytes().size());
  return into;
}

}  // namespace rollcall::traces
