# Logistic regression over radial features, full-batch gradient descent with momentum.
# Writes <out>/model.txt (one weight a line) and <out>/metrics.csv (epoch,loss,accuracy).
BEGIN { FS = "," }

{
    n++
    r = sqrt($1 * $1 + $2 * $2)
    f[n, 0] = 1; f[n, 1] = r; f[n, 2] = r * r; f[n, 3] = r * r * r
    label[n] = $3
}

END {
    metrics = out "/metrics.csv"
    print "epoch,loss,accuracy" > metrics
    rate = 0.25; keep = 0.9
    for (epoch = 1; epoch <= epochs; epoch++) {
        for (pass = 1; pass <= 8; pass++) step()
        printf "epoch %2d/%d  loss %.4f  accuracy %.3f\n", epoch, epochs, loss, hits / n
        fflush()
        printf "%d,%.6f,%.4f\n", epoch, loss, hits / n > metrics
        if (epoch == 1) first = loss
        if (pace > 0) system("sleep " pace)
    }
    close(metrics)
    for (k = 0; k < 4; k++) printf "%.8f\n", w[k] > (out "/model.txt")
    close(out "/model.txt")
    printf "loss %.4f -> %.4f, accuracy %.3f\n", first, loss, hits / n
    if (!(loss < first)) { print "the loss did not go down"; exit 1 }
}

# One pass over all rows: forward, gradient, update. Sets `loss` and `hits`.
function step(    i, k, z, p, error, grad) {
    loss = 0; hits = 0
    for (k = 0; k < 4; k++) grad[k] = 0
    for (i = 1; i <= n; i++) {
        z = w[0] * f[i, 0] + w[1] * f[i, 1] + w[2] * f[i, 2] + w[3] * f[i, 3]
        p = 1 / (1 + exp(-z))
        if (p < 1e-9) p = 1e-9
        if (p > 1 - 1e-9) p = 1 - 1e-9
        loss -= label[i] ? log(p) : log(1 - p)
        hits += (p > 0.5) == (label[i] == 1)
        error = p - label[i]
        for (k = 0; k < 4; k++) grad[k] += error * f[i, k]
    }
    for (k = 0; k < 4; k++) {
        speed[k] = keep * speed[k] - rate * grad[k] / n
        w[k] += speed[k]
    }
    loss /= n
}
