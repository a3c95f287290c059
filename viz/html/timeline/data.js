// The timeline of a report, on a canvas. These files are one module: CMake concatenates them in
// the order of viz/CMakeLists.txt. Names come from the user's files and are only ever drawn, or set as textContent.
//
// This file unpacks the format that viz/html/timeline_data.h describes.

const COLLECTIVE = 0, COMPUTE = 1, MESSAGE = 2, HOST = 3;  // Span::Kind
const UNKNOWN_PEER = 0x7fffffff;

async function unpack(element) {
  const text = atob(element.textContent);
  element.remove();  // the text is several megabytes
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Numbers {
  constructor(bytes, at) { this.bytes = bytes; this.at = at; }
  // Times need 53 bits, which shifts cannot handle.
  next() {
    let byte = this.bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let scale = 128; byte >= 128; scale *= 128) {
      byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
    }
    return value;
  }
  signed() {
    const value = this.next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}

// Slices are stored in columns; `end` is Infinity for a call that never returned.
function readTimeline(bytes) {
  const newline = bytes.indexOf(10);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(0, newline)));
  const numbers = new Numbers(bytes, newline + 1);
  const lanes = header.stories.flatMap(story => story.lanes);
  const count = lanes.reduce((sum, lane) => sum + lane[1], 0);
  const slices = { count, start: new Float64Array(count), end: new Float64Array(count),
                   call: new Uint32Array(count), seq: new Float64Array(count), peer: new Int32Array(count) };
  let at = 0;
  const stories = header.stories.map(story => ({
    fold: story.fold,
    lanes: story.lanes.map(([name, size]) => {
      const lane = { name, first: at, last: at + size };
      at = readLane(numbers, slices, header.calls, lane);
      return lane;
    }),
  }));
  return { ...header, slices, stories, isStuck: slices.end.includes(Infinity), groups: readArrivals(numbers, header.groups),
           arrows: readArrows(numbers, header.arrows) };
}

function readLane(numbers, slices, calls, lane) {
  let start = 0, seq = 0;
  for (let i = lane.first; i < lane.last; i++) {
    slices.start[i] = start += numbers.next();
    const duration = numbers.next();
    slices.end[i] = duration === 0 ? Infinity : start + duration - 1;
    slices.call[i] = numbers.next();
    slices.seq[i] = seq += numbers.signed();
    if (calls[slices.call[i]][0] === MESSAGE) {
      const offset = numbers.next() - 1;
      slices.peer[i] = offset < 0 ? UNKNOWN_PEER : offset % 2 ? -(offset + 1) / 2 : offset / 2;
    }
  }
  return lane.last;
}

// The rank that reached each collective of a group last, and when. Most groups have consecutive numbers.
class Arrivals {
  constructor(count) {
    this.seq = new Float64Array(count);
    this.rank = new Int32Array(count);
    this.time = new Float64Array(count);
  }
  // The index of a number, or -1.
  find(seq) {
    const likely = seq - this.seq[0];
    if (this.seq[likely] === seq) return likely;
    const place = firstAbove(this.seq, 0, this.seq.length, seq) - 1;
    return this.seq[place] === seq ? place : -1;
  }
}

// A map by the group's name.
function readArrivals(numbers, groups) {
  return new Map(groups.map(([name, count]) => {
    const arrivals = new Arrivals(count);
    let seq = 0, time = 0;
    for (let i = 0; i < count; i++) {
      arrivals.seq[i] = seq += numbers.next();
      arrivals.rank[i] = numbers.next();
      arrivals.time[i] = time += numbers.signed();
    }
    return [name, arrivals];
  }));
}

function readArrows(numbers, count) {
  let time = 0;
  return Array.from({ length: count }, () => {
    const from = numbers.next(), to = numbers.next();
    return { from, to, time: time += numbers.next() };
  });
}
