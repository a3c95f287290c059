// Slices too narrow to be drawn one by one: how much of a column's time they cover, and their looks. The sums over
// all slices before the i-th are computed once, so that a column costs the same at any zoom level.

const COMPUTING = 0, CALLING = 1, WAITING = 2, SENDING = 3, STUCK = 4, LOOKS = 5;

class Density {
  constructor(data, describer) {
    Object.assign(this, { data, describer, shares: new Float64Array(LOOKS) });
    const { count } = data.slices;
    this.sums = Array.from({ length: STUCK }, () => new Float64Array(count + 1));  // a stuck slice is its lane's last
    for (let i = 0; i < count; i++) {
      this.shares.fill(0);
      this.add(i, -Infinity, Infinity);
      for (let look = 0; look < STUCK; look++) this.sums[look][i + 1] = this.sums[look][i] + this.shares[look];
    }
  }

  // Adds the part of slice i that lies in [from, to).
  add(i, from, to) {
    const { slices, calls } = this.data;
    const begin = Math.max(slices.start[i], from), finish = Math.min(slices.end[i], to);
    if (finish <= begin && slices.end[i] > slices.start[i]) return;
    const kind = calls[slices.call[i]][0];
    if (slices.end[i] === Infinity) {
      this.shares[STUCK] += finish - begin;
    } else if (kind === COLLECTIVE) {
      const until = Math.min(Math.max(this.describer.waitedUntil(i), begin), finish);
      this.shares[WAITING] += until - begin;
      this.shares[CALLING] += Math.max(finish - until, 1);  // a slice of zero length is shown, too
    } else {
      this.shares[kind === COMPUTE ? COMPUTING : kind === HOST ? WAITING : SENDING] += Math.max(finish - begin, 1);
    }
  }

  // Fills `shares`: the time in [from, to) that slices [first, last) of one lane take, by look. Only the
  // first of them may begin before `from`, and only the last may end after `to`.
  cover(first, last, from, to) {
    this.shares.fill(0);
    this.add(first, from, to);
    if (last - first < 2) return;
    this.add(last - 1, from, to);
    for (let look = 0; look < STUCK; look++) {
      this.shares[look] += this.sums[look][last - 1] - this.sums[look][first + 1];
    }
  }
}

// Columns of pixels, drawn in one go.
class Raster {
  resize(width, height) {
    const [w, h] = [Math.max(Math.ceil(width), 1), Math.max(Math.ceil(height), 1)];
    if (this.canvas?.width !== w || this.canvas.height !== h) {
      this.canvas = new OffscreenCanvas(w, h);
      this.pen = this.canvas.getContext("2d");
      this.image = this.pen.createImageData(w, h);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.isEmpty = true;
  }

  clear() {
    if (!this.isEmpty) this.pixels.fill(0);
    this.isEmpty = true;
  }

  // A rectangle of one color: [red, green, blue], and a density from 0 to 1.
  fill(x, y, width, height, red, green, blue, density) {
    const color = (Math.round(density * 255) << 24 | blue << 16 | green << 8 | red) >>> 0;
    const left = Math.max(Math.round(x), 0), right = Math.min(Math.round(x + width), this.canvas.width);
    const top = Math.max(Math.round(y), 0), bottom = Math.min(Math.max(Math.round(y + height), top + 1), this.canvas.height);
    for (let line = top; line < bottom; line++) {
      this.pixels.fill(color, line * this.canvas.width + left, line * this.canvas.width + right);
    }
    this.isEmpty = false;
  }

  drawOn(context, x, y) {
    if (this.isEmpty) return;
    this.pen.putImageData(this.image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.canvas, x, y);
  }
}
