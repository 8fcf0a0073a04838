# 3x3 median of a plain PGM. Writes the frame to `clean` and prints `frame,error_before,error_after`.
NR > 3 { for (i = 1; i <= NF; i++) pixel[NR - 4, i - 1] = $i; width = NF; height = NR - 3 }

END {
    print "P2" > clean; print width, height > clean; print 255 > clean
    for (y = 0; y < height; y++) {
        line = ""
        for (x = 0; x < width; x++) {
            grey = median(x, y)
            dx = x - 10 - 5 * frame; dy = y - 32
            truth = int(30 + 200 / (1 + exp((sqrt(dx * dx + dy * dy) - 14) / 2)))
            before += distance(pixel[y, x], truth); after += distance(grey, truth)
            line = line grey " "
        }
        print line > clean
    }
    printf "%s,%.2f,%.2f\n", frame, before / (width * height), after / (width * height)
}

function distance(a, b) { return a > b ? a - b : b - a }

# Insertion sort of the neighbourhood, then its middle.
function median(x, y,    dx, dy, n, i, v, s) {
    n = 0
    for (dy = -1; dy <= 1; dy++)
        for (dx = -1; dx <= 1; dx++) {
            if (y + dy < 0 || y + dy >= height || x + dx < 0 || x + dx >= width) continue
            v = pixel[y + dy, x + dx] + 0
            for (i = n++; i > 0 && s[i - 1] > v; i--) s[i] = s[i - 1]
            s[i] = v
        }
    return s[int(n / 2)]
}
